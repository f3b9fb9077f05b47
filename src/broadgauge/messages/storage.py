"""What is a rank told to read and write, and what does it say of each time?"""

from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.model_shape import ModelShape
from broadgauge.messages.vocabulary import DataType

CacheState = Literal["cold", "warm", "unknown"]
"""Where the bytes of a read came from: not out of this machine's memory, out of it, or nobody can
prove either."""
AskedCache = Literal["cold", "warm"]
Access = Literal["write", "read"]
ModelFormat = Literal["safetensors", "torch", "distributed"]
StateDict = Literal["full", "sharded"]
"""Gathered to rank 0, which writes it; or each rank writes what it holds."""
Background = Literal["thread", "process"]
"""Of the rank."""
BatchSource = Literal["jsonl", "files", "arrow", "webdataset"]
"""One file of JSON lines; a file a sample; Hugging Face's data sets; tar files."""

DIRECT_BYTES = 4096
"""What O_DIRECT wants sizes and places to be multiples of: the logical block of nearly all devices.
Source: open(2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPhase:
    """Each rank writes a file of its own from one end to the other, and reads it so."""

    kind: Literal["raw"] = "raw"
    size_bytes: int
    """Of each rank's file."""
    request_bytes: int
    """Of one call."""
    is_direct: bool
    """Past the page cache (O_DIRECT), as training's files are never read."""
    cache: AskedCache
    """What reads are to find in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPhase:
    """A training's state is saved, until it is durable."""

    kind: Literal["checkpoint"] = "checkpoint"
    model: ModelShape
    has_optimizer_state: bool
    """AdamW's moments, too."""
    is_sharded: bool
    """Does each rank hold a shard of the state, or all of it?"""
    format: ModelFormat
    state_dict: StateDict
    background: Background | None
    """In which a distributed checkpoint is written while training goes on; None: training waits."""
    files_bytes: int
    """Of the whole state, without names and sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPhase:
    """A model's weights are read into the memory in which ranks hold them."""

    kind: Literal["load"] = "load"
    model: ModelShape
    dtype: DataType
    is_sharded: bool
    """Does each rank hold a shard of the weights, or all of them?"""
    format: ModelFormat
    is_mapped: bool
    """Into memory, and read where it is touched; else read whole."""
    is_broadcast: bool
    """Does rank 0 alone read, and send each tensor to the others?"""
    cache: AskedCache
    """What reads are to find in memory."""
    files_bytes: int
    """Of all weights, without names and sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """What all ranks of a node together may read from the storage's disk, and write to it."""

    storage: str
    """Its name, for messages."""
    read_byte_per_s: int
    write_byte_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesPhase:
    """The ranks load the batches of an epoch, each its share."""

    kind: Literal["batches"] = "batches"
    source: BatchSource
    samples: int
    """Of all ranks; a multiple of their number."""
    sample_bytes: int
    """Of a sample's payload."""
    batch_per_rank: int
    workers: int
    """Processes of each rank that load; 0: the rank itself does."""
    prefetch: int
    """Batches that each worker loads ahead."""
    cache: AskedCache
    """What an epoch is to find in memory."""
    step_time_s: float
    """That a rank computes with each batch."""
    is_shuffled: bool
    files_bytes: int
    """Of all samples in their files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTask:
    kind: Literal["storage"] = "storage"
    folder: str
    """Of the storage; ranks work in a folder of their own below it."""
    phase: RawPhase | CheckpointPhase | LoadPhase | BatchesPhase
    repetitions: int
    throttle: Throttle | None = None
    """None: the storage as it is."""
    storage: str = ""
    """Its name, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """One repetition of a phase on one rank, between the marks `<label>:begin` and `:end`."""

    type: Literal["block"] = "block"
    kind: Literal["file_access"] = "file_access"
    trial_id: str
    label: str
    access: Access
    size_bytes: int
    """Of ranks that find the same files in the same page cache, the first says them for all that
    load a model; of batches each says what it got."""
    operations_count: int | None
    """Calls to the kernel that moved the file's bytes, none where it is mapped; None: not counted.
    """
    seconds: float
    """Of a write, until it is durable as far as this rank goes."""
    parts_s: dict[str, float] = field(default_factory=dict)
    """By name, in their order; they add up to `seconds`."""
    stall_s: float | None = None
    """How long does training wait of that? None: nothing is trained."""
    waits_s: tuple[float, ...] = ()
    """For the batch of each step, the first one included; empty: no batches are loaded."""
    device_bytes: int | None = None
    """Read from block devices by this process and its workers meanwhile, or written to them; None:
    not counted."""
    cached_before_bytes: int | None = None
    """Of files that several ranks read, the first of those that share a page cache says all of it,
    and the others 0. None: a write, or the kernel does not say."""
    cache: CacheState | None = None
    """Of a read; None: a write, or this rank reads no file."""
    evidence: str = ""
    """Of `cache`."""
    file_system: str | None = None
    """`ext4`; None: not known."""
    held_ratio: float | None = None
    """Of the files' bytes, what their file system holds at most: below 1 where it compresses. None:
    it does not say."""
