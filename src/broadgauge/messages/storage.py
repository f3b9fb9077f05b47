"""What is a rank told of a storage, and what does it say of each phase on it?

Plain data of the standard library, as all of this room. Sizes in bytes, times in seconds of a
monotonic clock of the rank's host.
"""

from dataclasses import dataclass, field
from typing import Literal

ELSEWHERE = "another rank could not begin: its own problem says why"
"""A rank's problem that is none of its own."""
CacheState = Literal["cold", "warm", "unknown"]
StoragePhaseWord = Literal["raw", "batch_loading", "model_loading", "checkpoint_saving"]
DataLayout = Literal["files", "jsonl", "arrow", "webdataset"]
ModelFormat = Literal["safetensors", "safetensors-mmap", "torch", "dcp"]
LoadBy = Literal["every-rank", "rank0-broadcast"]
CheckpointFormat = Literal[
    "torch", "safetensors", "dcp", "dcp-async", "dcp-async-process", "dcp-async-pinned"
]
RawAccess = Literal["write", "read", "random-read", "small-write", "small-read", "metadata"]
READ_ACCESSES: frozenset[RawAccess] = frozenset({"read", "random-read", "small-read"})
"""Those that are measured in each state of the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPlace:
    """A bucket, or a prefix of one; credentials stand in the rank's environment, as the AWS command
    line has them."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    """None: Amazon's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlace:
    """Where a storage is, on the rank's machine. Exactly one of `folder` and `objects` is how it is
    read and written; `behind` is who is asked whether a mount's object is there."""

    name: str
    folder: str | None = None
    """On the rank's machine, or in its node's mounts."""
    objects: ObjectPlace | None = None
    """Read and written without a mount."""
    behind: ObjectPlace | None = None
    """The bucket that `folder` shows; None: none is, or it can't be asked."""
    is_shared: bool = False
    """All nodes see the same files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPlan:
    """What the storage itself can do, by plain reads and writes."""

    file_bytes: int
    block_bytes: int
    small_files: int
    """Of 4 KiB each."""
    random_reads: int
    accesses: tuple[RawAccess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """Batches as training loads them: each rank its shard, by the loader of the layout."""

    layouts: tuple[DataLayout, ...]
    samples: int
    """Of each rank."""
    sample_bytes: int
    batch: int
    workers: int
    prefetch: int
    step_s: float
    """How long the rank computes on each batch: what is loaded meanwhile is no stall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    model_bytes: int
    formats: tuple[ModelFormat, ...]
    load_by: tuple[LoadBy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    checkpoint_bytes: int
    """Of all ranks together."""
    formats: tuple[CheckpointFormat, ...]
    is_sharded: bool
    """False: rank 0 gathers and saves all of it."""
    saves: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTask:
    """Phases of a training on one storage, one after the other; a phase that is None is left
    out."""

    kind: Literal["storage"] = "storage"
    place: StoragePlace
    caches: tuple[Literal["cold", "warm"], ...]
    """Reads are measured in each of these states, where it can be had."""
    most_bytes: int
    """Written, all ranks and phases together: a phase that would write more is refused."""
    raw: RawPlan | None = None
    batch_loading: BatchPlan | None = None
    model_loading: ModelPlan | None = None
    checkpoint_saving: CheckpointPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheProof:
    """Were bytes read from the storage, or had memory kept them?"""

    state: CacheState
    evidence: str
    """`read_bytes 1.00 of size`, `0 of 4096 pages cached`, or why it can't be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageBlock:
    """One phase in one variant on one rank."""

    type: Literal["block"] = "block"
    kind: Literal["storage"] = "storage"
    trial_id: str
    phase: StoragePhaseWord
    variant: str
    """`safetensors-mmap, rank0-broadcast`, `read`, `dcp-async, sharded`: unique in its phase."""
    asked_cache: Literal["cold", "warm"] | None
    """None: a phase that writes."""
    cache: CacheProof | None
    num_bytes: int
    """That this rank read or wrote."""
    stall_s: float
    """How long training waits on this rank."""
    busy_s: float
    """From the begin until this rank's last operation has ended, in the background too."""
    durable_s: float | None = None
    """From the begin of a save until it is durable; None: a phase that reads, or not known."""
    durable_evidence: str = ""
    """`object there, 104857600 bytes, checksum agrees`, `file and folder fsynced`, or why it is not
    known."""
    operations: int = 0
    operation_s: tuple[float, ...] = ()
    """Of each operation, at most 1,000 evenly chosen ones: p50 and p99 come from them."""
    parts_s: dict[str, float] = field(default_factory=dict)
    """Of a save: `gather`, `device_to_host`, `serialise`, `write`, `sync`, `upload`; of a load:
    `read`, `deserialise`, `broadcast`, `to_device`; in the order of the names here."""
    began_s: float = 0.0
    """On the rank's clock, to lay ranks beside each other."""
    cpu_s: float = 0.0
    """Of this process and its loaders."""
    read_bytes: int | None = None
    """From block devices, by /proc/self/io; None: not told."""
    samples: int = 0
    """Of batch loading."""
    step_stalls_s: tuple[float, ...] = ()
    """Of batch loading, by batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageProblem:
    """Why a phase was not measured, in a sentence; the others go on."""

    type: Literal["block"] = "block"
    kind: Literal["storage_problem"] = "storage_problem"
    trial_id: str
    phase: StoragePhaseWord
    variant: str
    message: str
