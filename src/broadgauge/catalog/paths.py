"""What should a path inside a node give? Known figures with their sources, and physics' limit."""

import functools
from importlib import resources

from pydantic import BaseModel, ConfigDict, Field, model_validator

from broadgauge.catalog.gpus import find_gpu
from broadgauge.specs.networks.network import PathKind
from broadgauge.specs.text.yaml_source import parse_yaml


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LinkRate(_Entry):
    """What one GPU's links of one kind carry in one direction, all together."""

    name: str
    gbyte_per_s: float = Field(gt=0)
    source: str = Field(min_length=10)
    date: str = Field(pattern=r"^20\d\d(-\d\d){0,2}$")


class GpuLinks(_Entry):
    """Which links a GPU of gpus.yaml has."""

    gpu: str
    nvlink: str | None = None
    pcie: str


class PathFigure(_Entry):
    """One published or measured busbw."""

    gbyte_per_s: float = Field(gt=0)
    source: str = Field(min_length=10)
    date: str = Field(pattern=r"^20\d\d(-\d\d){0,2}$")


class Expectation(_Entry):
    """Busbw of a large all-reduce over NCCL on one path, 10^9 byte/s."""

    path: PathKind
    gpus: tuple[str, ...] = Field(min_length=1)
    num_gpus: tuple[int, int]
    """From, to."""
    nvls: bool = False
    from_bytes: int = Field(gt=0)
    """Smaller messages are not expected to reach it."""
    low_gbyte_per_s: float = Field(gt=0)
    high_gbyte_per_s: float = Field(gt=0)
    figures: tuple[PathFigure, ...] = Field(min_length=1)
    note: str = ""

    @model_validator(mode="after")
    def _figures_lie_between(self) -> "Expectation":
        values = [figure.gbyte_per_s for figure in self.figures]
        if not self.low_gbyte_per_s <= min(values) <= max(values) <= self.high_gbyte_per_s:
            raise ValueError(f"{self.path}, {self.gpus}: low and high must enclose the figures")
        if not 2 <= self.num_gpus[0] <= self.num_gpus[1]:
            raise ValueError(f"{self.path}, {self.gpus}: num_gpus is from, to, at least 2")
        return self

    def busbw_ratio(self, num_gpus: int) -> float:
        """How much more than it sends can a GPU's busbw be?

        1 without NVLS. With it a GPU sends S for the switch to add up, and S/n of sums for the
        switch to multiply: (n+1)/n·S, where busbw counts 2(n−1)/n·S. Source: NVIDIA/nccl v2.28.9,
        src/device/all_reduce.h (NVLS: multimem load-reduce and store of S/n each), counted.
        """
        return max(1.0, 2 * (num_gpus - 1) / (num_gpus + 1)) if self.nvls else 1.0


class PathCatalog(_Entry):
    """All of paths.yaml."""

    links: tuple[LinkRate, ...]
    gpus: tuple[GpuLinks, ...]
    expectations: tuple[Expectation, ...]

    @model_validator(mode="after")
    def _possible(self) -> "PathCatalog":
        for entry in self.expectations:
            for gpu in entry.gpus:
                limit = self.limit_gbyte_per_s(entry, gpu, entry.num_gpus[0])
                if entry.high_gbyte_per_s > limit:
                    raise ValueError(
                        f"{entry.path} of {gpu}: {entry.high_gbyte_per_s:g} GB/s is more than "
                        f"its links carry, {limit:g}"
                    )
        return self

    def limit_gbyte_per_s(self, entry: Expectation, gpu: str, num_gpus: int) -> float:
        """The highest busbw that this GPU's links allow.

        Over NVLink its NVLinks'; otherwise its PCIe slot's: bytes through the host's memory or
        sockets go up from the sending GPU and down to the receiving one, and both directions of a
        slot work at the same time. Raises ValueError where the catalog does not name the links.
        """
        rates = {link.name: link.gbyte_per_s for link in self.links}
        links = next((each for each in self.gpus if each.gpu == gpu), None)
        name = None if links is None else links.nvlink if entry.path == "nvlink" else links.pcie
        if name is None or name not in rates:
            raise ValueError(f"{entry.path} of {gpu}: the catalog does not name its links")
        return rates[name] * entry.busbw_ratio(num_gpus)


@functools.cache
def path_catalog() -> PathCatalog:
    """Everything that is known of paths."""
    text = resources.files("broadgauge.catalog").joinpath("paths.yaml").read_text(encoding="utf-8")
    return PathCatalog.model_validate(parse_yaml(text, "paths.yaml").data)


def expect_path(path: str, device_name: str, num_gpus: int) -> Expectation | None:
    """What should this path give between so many GPUs of this name? None: nothing is known."""
    gpu = find_gpu(device_name)
    if gpu is None:
        return None
    for entry in path_catalog().expectations:
        low, high = entry.num_gpus
        if entry.path == path and gpu.name in entry.gpus and low <= num_gpus <= high:
            return entry
    return None
