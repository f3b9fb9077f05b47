"""What is measured on each storage: its raw rates, and the phases in which a training uses it."""

from typing import Literal

from pydantic import Field, model_validator

from broadgauge.messages.storage import (
    CheckpointFormat,
    DataLayout,
    LoadBy,
    ModelFormat,
    RawAccess,
)
from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.units import DelayS, SizeBytes
from broadgauge.specs.workload_base import WorkloadBase


class RawStorage(Spec):
    """Plain reads and writes: what the storage can do, to put the phases against."""

    file_bytes: SizeBytes = 256 * 1024**2
    """Of one large file, of each rank."""
    block_bytes: SizeBytes = 1024**2
    """Of one read or write of it."""
    small_files: int = Field(default=200, ge=0, le=100_000)
    """Files of 4 KiB, of each rank."""
    random_reads: int = Field(default=1000, ge=0, le=1_000_000)
    """Of 4 KiB, anywhere in the large file."""
    accesses: tuple[RawAccess, ...] = Field(
        default=("write", "read", "random-read", "small-write", "small-read", "metadata"),
        min_length=1,
    )
    """What is measured: sequential, anywhere in a file, many small files, and their names."""


class BatchLoading(Spec):
    """Batches as training loads them, each rank its shard of a set that is made for it."""

    layouts: tuple[DataLayout, ...] = Field(default=("files",), min_length=1)
    """`files` and `jsonl` by PyTorch's DataLoader, `arrow` by Hugging Face's datasets, `webdataset`
    by tar files."""
    samples: int = Field(default=200, ge=1, le=10_000_000)
    """Of each rank."""
    sample_bytes: SizeBytes = 100 * 1000
    """Of one sample."""
    batch: int = Field(default=4, ge=1, le=65_536)
    """Samples of a step and rank."""
    workers: int = Field(default=2, ge=0, le=64)
    """Of each rank's loader; 0: the rank itself reads."""
    prefetch: int = Field(default=2, ge=1, le=64)
    """Batches that each worker keeps ready."""
    step_s: DelayS = 0.01
    """How long a rank computes on a batch: what is loaded meanwhile is no stall."""


class ModelLoading(Spec):
    """A model's weights, from the storage into each rank's memory, or its GPU's."""

    model_bytes: SizeBytes = 256 * 1024**2
    """Of the whole model, made up for the measurement."""
    formats: tuple[ModelFormat, ...] = Field(
        default=("safetensors", "safetensors-mmap"), min_length=1
    )
    """How it is stored and read: `-mmap` maps the file and touches every byte."""
    load_by: tuple[LoadBy, ...] = Field(default=("every-rank",), min_length=1)
    """`rank0-broadcast`: rank 0 reads, and the network carries it to the others."""


class CheckpointSaving(Spec):
    """What training waits for a save, and when the save is durable."""

    checkpoint_bytes: SizeBytes = 256 * 1024**2
    """Of all ranks together."""
    formats: tuple[CheckpointFormat, ...] = Field(
        default=("torch", "dcp", "dcp-async"), min_length=1
    )
    """Who saves: `torch.save`, safetensors, or `torch.distributed.checkpoint`, in the background of
    a thread (`-async`), of a process, or from pinned memory."""
    is_sharded: bool = True
    """Each rank saves its part; false: rank 0 gathers all of it."""
    saves: int = Field(default=1, ge=1, le=1000)
    """Of each format, one after the other."""


class StorageWorkload(WorkloadBase):
    """Each phase on a storage: how long training waits, and what the storage did meanwhile."""

    kind: Literal["storage"]
    """The kind of workload: says which keys the entry has."""
    name: Name = "storage"
    """Name in tables, labels and selectors; a storage's name is put behind it."""
    caches: tuple[Literal["cold", "warm"], ...] = Field(default=("cold", "warm"), min_length=1)
    """In which states of the cache reads are measured, each a row of its own."""
    most_bytes: SizeBytes = 16 * 1024**3
    """Written at most, all ranks and phases of a trial together."""
    raw: RawStorage | None = RawStorage()
    """Plain reads and writes; null: left out, as each phase."""
    batch_loading: BatchLoading | None = BatchLoading()
    """Batches as training loads them."""
    model_loading: ModelLoading | None = ModelLoading()
    """Weights at the start."""
    checkpoint_saving: CheckpointSaving | None = CheckpointSaving()
    """Saves of model and optimizer."""

    @property
    def needs_storage(self) -> bool:
        return True

    @model_validator(mode="after")
    def _something(self) -> "StorageWorkload":
        phases = (self.raw, self.batch_loading, self.model_loading, self.checkpoint_saving)
        if all(phase is None for phase in phases):
            raise placed_error("no phase is left to measure", ("raw",), "leave one of them in")
        return self
