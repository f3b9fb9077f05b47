"""Which batches are loaded: of how many samples, kept in which files, by how many workers?"""

from typing import Literal

from pydantic import Field, model_validator

from broadgauge.messages.storage import AskedCache, BatchSource
from broadgauge.specs.base import placed_error
from broadgauge.specs.units import DelayS, SizeBytes
from broadgauge.specs.workloads.storage import StorageWorkload

MOST_STEPS = 100_000
"""Of a rank in an epoch: it tells the wait of each in one message."""
PAGE_BYTES = 4096
"""What a file takes on most file systems, however short it is. Source: mke2fs(8), block size."""
TAR_BLOCK_BYTES = 512
"""A member's header is one, and its content is filled up to whole ones. Source: tar(5)."""


class BatchesWorkload(StorageWorkload):
    """Ranks load the batches of an epoch as a training does, by torch's DataLoader."""

    phase: Literal["batches"]
    """Which phase: says which further keys the entry has."""
    source: BatchSource = "jsonl"
    """jsonl: one file of JSON lines, each found by an index of their places. files: one file a
    sample, in folders of 1000. arrow: Hugging Face `datasets`, mapped into memory. webdataset: tar
    files, each read from one end to the other. The latter two need the extra `data`."""
    samples: int = Field(default=2000, ge=1, le=10_000_000)
    """That all ranks together read in an epoch, each exactly once."""
    sample_size: SizeBytes = Field(default=16 << 10, le=128 << 20)
    """Of a sample's payload, random bytes. A JSON line has them as base64: four thirds of that."""
    batch_per_rank: int = Field(default=8, ge=1, le=100_000)
    """Samples of a step on one rank; the last batch of an epoch may be short."""
    workers: int = Field(default=2, ge=0, le=128)
    """Processes of each rank that load its batches; 0: the rank loads them itself."""
    prefetch: int = Field(default=2, ge=1, le=1000)
    """Batches that each worker loads ahead; without workers none are."""
    cache: AskedCache = "cold"
    """What an epoch is to find in memory: nothing of the files, or all. What it did find is proven,
    or `unknown`."""
    step_time_s: DelayS = 0.0
    """How long a rank computes with each batch, which it sleeps, so that workers have its cores; 0:
    it only loads."""
    shuffle: bool = True
    """Samples come in another order in each epoch; of `webdataset` tar files do, and samples within
    a buffer of 1000."""

    @model_validator(mode="after")
    def _waits_fit_into_a_message(self) -> "BatchesWorkload":
        if self.samples > MOST_STEPS * self.batch_per_rank:
            raise placed_error(
                f"{self.samples} samples are more than {MOST_STEPS} steps of "
                f"`batch_per_rank: {self.batch_per_rank}`",
                ("samples",),
                "fewer samples, or a larger batch",
            )
        return self

    @property
    def asked_cache(self) -> AskedCache | None:
        return self.cache

    @property
    def writes_text(self) -> bool:
        return self.source == "jsonl"

    @property
    def writes(self) -> int:
        return 1

    @property
    def reads(self) -> int:
        """The first epoch is not measured: its samples are compared."""
        return self.repetitions + 1

    def files_bytes(self, world_size: int) -> int:
        """However many ranks there are, each sample is there once where nodes share the path."""
        del world_size
        return self.samples * self._stored_bytes

    @property
    def samples_bytes(self) -> int:
        return self.samples * self.sample_size

    def idle_s(self, world_size: int) -> float:
        steps = -(-self.samples // (world_size * self.batch_per_rank))
        return self.step_time_s * steps * self.repetitions

    def why_not_split(self, world_size: int) -> str | None:
        if self.samples % world_size:
            return (
                f"{self.samples} samples are no multiple of {world_size} ranks: some would be read "
                "twice"
            )
        readers = world_size * max(1, self.workers)
        if self.source == "webdataset" and self.samples < readers:
            return (
                f"{self.samples} samples make fewer tar files than there are workers of all ranks "
                f"({readers}): some would have none"
            )
        return None

    @property
    def _stored_bytes(self) -> int:
        """Of one sample in its file, names and sizes included."""
        match self.source:
            case "jsonl":
                return -(-self.sample_size // 3) * 4 + 48
            case "files":
                return _rounded_up(self.sample_size, PAGE_BYTES)
            case "arrow":
                return self.sample_size + 32
            case "webdataset":
                return TAR_BLOCK_BYTES + _rounded_up(self.sample_size, TAR_BLOCK_BYTES)


def _rounded_up(size_bytes: int, block_bytes: int) -> int:
    return -(-size_bytes // block_bytes) * block_bytes
