"""What can this GPU compute at most? Known GPUs, with the source of each figure."""

import functools
import re
from importlib import resources

from pydantic import BaseModel, ConfigDict

from broadgauge.specs.workload import DataType
from broadgauge.specs.yaml_source import parse_yaml


class GpuEntry(BaseModel):
    """One GPU of gpus.yaml. Peaks are dense, 10^12 FLOP/s."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    matches: tuple[str, ...]
    bfloat16_tflops: float
    float32_tflops: float
    source: str
    date: str

    def peak_flops(self, dtype: DataType) -> float:
        """FLOP/s of one GPU."""
        tflops = self.bfloat16_tflops if dtype == "bfloat16" else self.float32_tflops
        return tflops * 1e12


@functools.cache
def known_gpus() -> tuple[GpuEntry, ...]:
    """Every entry, in the order in which names are matched."""
    text = resources.files("broadgauge.catalog").joinpath("gpus.yaml").read_text(encoding="utf-8")
    entries = parse_yaml(text, "gpus.yaml").data["gpus"]
    return tuple(GpuEntry.model_validate(entry) for entry in entries)


def find_gpu(device_name: str) -> GpuEntry | None:
    """The entry of a name such as `NVIDIA H100 80GB HBM3`; None: unknown, so no MFU is stated."""
    words = set(re.split(r"[\s_-]+", device_name.lower()))
    for entry in known_gpus():
        if all(word.lower() in words for word in entry.matches):
            return entry
    return None
