"""What is known of a phase that only writes and reads files?"""

from typing import Literal

from pydantic import model_validator

from broadgauge.messages.storage import DIRECT_BYTES, AskedCache
from broadgauge.specs.base import placed_error
from broadgauge.specs.units import SizeBytes
from broadgauge.specs.workloads.storage import StorageWorkload


class RawFilesWorkload(StorageWorkload):
    """Each rank writes and reads a file of its own, which other phases are held against."""

    phase: Literal["raw"] = "raw"
    """Which phase: says which further keys the entry has."""
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

    @model_validator(mode="after")
    def _direct_requests_are_aligned(self) -> "RawFilesWorkload":
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
    def asked_cache(self) -> AskedCache | None:
        """O_DIRECT is past the cache by its meaning."""
        return None if self.direct else self.cache

    @property
    def raw_files_cache(self) -> AskedCache | None:
        return self.asked_cache

    @property
    def writes(self) -> int:
        return self.repetitions + 1

    @property
    def reads(self) -> int:
        return self.repetitions + 1

    def files_bytes(self, world_size: int) -> int:
        return self.size * world_size
