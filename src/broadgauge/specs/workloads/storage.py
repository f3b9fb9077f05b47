"""Which phase of a training's input and output is measured, and with what in memory?"""

from typing import Literal

from pydantic import Field, model_validator

from broadgauge.messages.storage import DIRECT_BYTES, AskedCache
from broadgauge.specs.base import Name, placed_error
from broadgauge.specs.units import SizeBytes
from broadgauge.specs.workloads.common import WorkloadBase


class StorageWorkload(WorkloadBase):
    """How long does a training wait for its files? One phase, on every storage."""

    kind: Literal["storage"]
    """The kind of workload: says which keys the entry has."""
    name: Name = "storage"
    """Name in tables, labels and selectors."""
    storages: tuple[Name, ...] | None = Field(default=None, min_length=1)
    """Names of the storages that it runs on; null: all."""
    phase: Literal["raw"] = "raw"
    """`raw`: each rank writes and reads a file of its own, which other phases are held against."""
    size: SizeBytes = 256 << 20
    """Of each rank's file."""
    request: SizeBytes = 1 << 20
    """Of one call to the kernel."""
    cache: AskedCache = "cold"
    """What a read is to find in memory: nothing of the file, or all of it. What it did find is
    proven, or `unknown`."""
    direct: bool = False
    """Past the page cache (O_DIRECT): what the device can do, and no file of a training is read so.
    """
    repetitions: int = Field(default=3, ge=1, le=100)
    """Of the write, and of the read, in a trial."""

    @model_validator(mode="after")
    def _direct_requests_are_aligned(self) -> "StorageWorkload":
        if self.direct:
            for key, size in (("size", self.size), ("request", self.request)):
                if size % DIRECT_BYTES:
                    raise placed_error(
                        f"{size} bytes are no multiple of {DIRECT_BYTES}, as `direct` wants",
                        (key,),
                    )
            if self.cache == "warm":
                raise placed_error(
                    "`direct` reads nothing from memory", ("cache",), "`cache: cold`"
                )
        return self

    @property
    def named_storages(self) -> tuple[str, ...] | None:
        return self.storages

    @property
    def asked_cache(self) -> AskedCache | None:
        """O_DIRECT is past the cache by its meaning."""
        return None if self.direct else self.cache

    @property
    def written_bytes(self) -> int:
        """Of one rank, in a trial: the file is written each time, and once to warm up."""
        return self.size * (self.repetitions + 1)
