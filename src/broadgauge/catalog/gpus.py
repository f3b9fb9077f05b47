"""What can this GPU compute, hold and send at most? Known GPUs, with the source of each figure."""

import functools
import re
import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from broadgauge.catalog.constants import known_constants
from broadgauge.catalog.entries import DATE_PATTERN, Entry, Part, find_entry, is_alike
from broadgauge.catalog.loading import shipped_entries
from broadgauge.specs.workloads.gpt import DataType

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
Nvidia = Literal["pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"]
Amd = Literal["cdna1", "cdna2", "cdna3", "cdna4"]
Generation = Literal[Nvidia, Amd]
Topology = Literal["nvswitch", "mesh", "bridge"]

_PRECISIONS: dict[str, Precision] = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
}
PCIE_LANE_GBYTE_PER_S = {3: 8 * 128 / 130 / 8, 4: 16 * 128 / 130 / 8, 5: 32 * 128 / 130 / 8}
"""One way, by generation: GT/s with 128b/130b coding; generation 6 counts 64 GT/s without it.

Source: PCI Express base specifications 3.0, 4.0, 5.0 (encoding), 6.0 (FLIT mode).
"""
PCIE_LANE_GBYTE_PER_S[6] = 64 / 8


class Peaks(Part):
    """Dense (no sparsity) peaks of matrix products, 10^12 FLOP/s; None: the hardware has none.

    fp16, bf16 and fp8 accumulate in fp32, as training does: GeForce GPUs do that at half the rate
    which their tables print for fp16 accumulation. fp32 is without tensor cores.
    """

    fp32_tflops: float = Field(alias="fp32", gt=0)
    tf32_tflops: float | None = Field(default=None, alias="tf32", gt=0)
    fp16_tflops: float | None = Field(default=None, alias="fp16", gt=0)
    bf16_tflops: float | None = Field(default=None, alias="bf16", gt=0)
    fp8_tflops: float | None = Field(default=None, alias="fp8", gt=0)
    fp4_tflops: float | None = Field(default=None, alias="fp4", gt=0)

    def of(self, precision: Precision) -> float | None:
        """10^12 FLOP/s of one precision."""
        value: float | None = getattr(self, f"{precision}_tflops")
        return value


class MatrixProducts(Part):
    """What large matrix products reach on one GPU, as measured: 10^12 FLOP/s."""

    precision: Literal["fp16", "bf16"]
    reached_tflops: float = Field(gt=0)
    """The best size of each run; of several runs the median."""
    runs: int = Field(ge=1)
    source: str = Field(min_length=1)
    date: str = Field(pattern=DATE_PATTERN)
    """When they were published, or read where they have no date."""


class Board(Part):
    """How the GPUs of one board are joined by NVLink (or Infinity Fabric)."""

    gpus: int = Field(ge=2)
    topology: Topology
    pair_links: int | None = Field(default=None, ge=1)
    """Links that two neighbours share; the fewest of any joined pair. None: a switch joins all."""


class Links(Part):
    """NVLink, or AMD's Infinity Fabric, of one GPU."""

    gbyte_per_s: float = Field(gt=0)
    """One direction, all links of the GPU together; vendors print both directions, twice this."""
    links: int = Field(ge=1)
    boards: tuple[Board, ...] = Field(min_length=1)

    def board(self, board_gpus: int) -> Board:
        """The board with so many GPUs, else the nearest larger one, else the largest."""
        by_size = sorted(self.boards, key=lambda board: board.gpus)
        return next((board for board in by_size if board.gpus >= board_gpus), by_size[-1])

    def one_way_gbyte_per_s(self, num_gpus: int, board_gpus: int) -> float | None:
        """What one GPU sends to `num_gpus` − 1 others of its board; None: no link joins so many.

        A switch gives a GPU all its links whatever the others are. On a mesh it has the links to
        those that take part, at most all. A bridge joins two.
        """
        board = self.board(board_gpus)
        if num_gpus < 2 or num_gpus > board.gpus:
            return None
        if board.topology == "nvswitch" or board.pair_links is None:
            return self.gbyte_per_s
        per_link = self.gbyte_per_s / self.links
        return min(self.gbyte_per_s, per_link * board.pair_links * (num_gpus - 1))


class Gpu(Entry):
    """One GPU of gpus.yaml."""

    matches: tuple[str, ...] = ()
    """All these words stand in the name that NVML gives; none: it is not found by that name, but
    for a user's entry, whose own name may be in it."""
    like: str | None = None
    """The entry that a user's own took the rest from."""
    price_usd_per_hour: float | None = Field(default=None, gt=0)
    """Of one, where a user's own entry says it; the shipped ones' are in prices.yaml."""
    generation: Generation
    form: Literal["sxm", "pcie", "nvl", "superchip", "oam"]
    peaks: Peaks
    memory_gib: int = Field(gt=0)
    """As the data sheet names it: HBM modules of "80 GB" hold about 80 GiB."""
    memory_gbyte_per_s: float = Field(gt=0)
    sms: int = Field(gt=0)
    """Streaming multiprocessors, or AMD's compute units, that are switched on."""
    nvlink: Links | None = None
    """None: PCIe only."""
    pcie_generation: Literal[3, 4, 5, 6]
    pcie_lanes: Literal[4, 8, 16] = 16
    tdp_watts: float = Field(gt=0)
    max_mhz: float = Field(gt=0)
    """The boost clock that the peaks are stated at, or the highest that NVML reports."""
    products: MatrixProducts | None = None
    """None: nobody's measurement is known."""

    @property
    def reached_ratio(self) -> float | None:
        """What large products reach over the stated peak; None: unknown.

        Above 1 where a board clocks higher than its peaks are stated at, as GeForce boards do; far
        below 1 where its power limit slows it.
        """
        if self.products is None:
            return None
        peak = self.peaks.of(self.products.precision)
        return None if peak is None else self.products.reached_tflops / peak

    def peak_flops(self, dtype: DataType | Precision) -> float | None:
        """FLOP/s of one GPU, dense; None: the hardware has no such arithmetic."""
        tflops = self.peaks.of(_PRECISIONS.get(dtype, dtype))  # type: ignore[arg-type]
        return None if tflops is None else tflops * 1e12

    @property
    def pcie_gbyte_per_s(self) -> float:
        """One direction of its slot, coding taken off, packet headers not."""
        return PCIE_LANE_GBYTE_PER_S[self.pcie_generation] * self.pcie_lanes


@functools.cache
def known_gpus() -> tuple[Gpu, ...]:
    """Every entry that is shipped."""
    return shipped_entries("gpus", Gpu)


@functools.lru_cache(maxsize=256)
def find_gpu_named(name: str) -> Gpu:
    """The entry of a catalog name or alias, such as `h100-sxm`. Raises InputError with a hint."""
    return find_entry(name, known_gpus(), "gpu")


MEASURED_ON = {
    "volta": "v100-sxm-16gb",
    "turing": "t4",
    "ampere": "a100-sxm-80gb",
    "ada": "l40s",
    "hopper": "h100-sxm",
    "blackwell": "b200-sxm",
}
"""Which board a generation's efficiency of matrix products is of, in constants.yaml."""


def clock_ratio(gpu: Gpu) -> float:
    """How much nearer to its stated peak this board comes than the one its generation's efficiency
    is of, as shipped.

    Boards of one generation differ in this by a factor of two: the peaks of GeForce are stated at
    clocks that they exceed, those of 70 W boards at clocks that they never hold. Where this one was
    not measured, the median of shipped ones of its kind counts; 1 without any. A generation of
    which no board was measured has the efficiency of any GPU, so that is what it is beside.
    """
    reached = gpu.reached_ratio
    if reached is None:
        return _of_its_kind(gpu.generation, _kind(gpu))
    return reached / _usual_ratio(gpu.generation)


@functools.cache
def _of_its_kind(generation: Generation, kind: str) -> float:
    boards = [gpu for gpu in known_gpus() if (gpu.generation, _kind(gpu)) == (generation, kind)]
    measured = [clock_ratio(board) for board in boards if board.reached_ratio is not None]
    return statistics.median(measured) if measured else 1.0


def _kind(gpu: Gpu) -> str:
    """GeForce boards clock as they can, others as their form is cooled and powered."""
    is_geforce = re.fullmatch(r"[gr]tx-\d{4}(-?ti)?", gpu.name) is not None
    return "geforce" if is_geforce else gpu.form


@functools.cache
def _usual_ratio(generation: Generation) -> float:
    name = MEASURED_ON.get(generation)
    reached = None if name is None else find_gpu_named(name).reached_ratio
    if reached is not None:
        return reached
    return next(each.value for each in known_constants() if each.name == "gemm_efficiency")


_OTHER_PARTS = frozenset(("mig", "laptop", "mobile", "max", "d"))
"""Words after the name of a GPU that is a slice of it or another chip (`4090 Laptop`, `4090 D`,
`Max-Q`): its facts are not those, unless an entry asks for the word."""


def find_gpu(device_name: str, gpus: Sequence[Gpu] | None = None) -> Gpu | None:
    """The entry of a name such as `NVIDIA H100 80GB HBM3`; None: unknown, so no MFU is stated.

    Of all entries whose words stand in it, the one that asks for most; of two that ask for as many,
    the user's own. An entry of the user's that asks for none is found by its name or alias. `gpus`:
    of a catalog with the user's; None: the shipped ones.
    """
    entries = known_gpus() if gpus is None else gpus
    words = set(re.split(r"[\s_-]+", device_name.lower()))
    asked = [(entry, _asked_words(entry)) for entry in entries]
    named = [
        (entry, len(asks))
        for entry, asks in asked
        if asks and asks <= words and not (words & _OTHER_PARTS) - asks
    ]
    most = max((number for _, number in named), default=0)
    found = [entry for entry, number in named if number == most]
    if not found:
        found = [entry for entry, asks in asked if not asks and is_alike(device_name, entry)]
    own = [entry for entry in found if entry not in known_gpus()]
    shipped = found if most else []
    return _only(own or shipped)


def _only(found: Sequence[Gpu]) -> Gpu | None:
    return found[0] if len(found) == 1 else None


def _asked_words(entry: Gpu) -> frozenset[str]:
    """Those of the shipped entry that it replaces where it names none."""
    matches = entry.matches or next(
        (each.matches for each in known_gpus() if each.name == entry.name), ()
    )
    return frozenset(word.lower() for word in matches)
