"""What do the phases of a storage task write, read and ask for? Before any of them has begun.

The probe keeps to these sums, and a plan shows them: one arithmetic for both. Sizes in bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.messages.storage import (
    BatchPlan,
    CheckpointPlan,
    ModelPlan,
    RawAccess,
    RawPlan,
    StoragePhaseWord,
    StorageTask,
)

SMALL_FILE_BYTES = 4096
PART_BYTES = 8 * 1024**2
"""Of one request for a part of a large object. Source: boto3's TransferConfig,
`multipart_chunksize` and `multipart_threshold`, 8 MiB."""
FILE_OVERHEAD_BYTES = 2**20
"""Of a model's or a rank's file, beside its tensors and 2 % of them, at most."""
SET_RATIO = 1.5
"""A set of samples takes more than they do: tar's headers and padding, Arrow's index."""
SET_HEADER_BYTES = 4096
"""Of each sample."""
_METADATA_REQUESTS = 2
"""Of an empty object, beside writing it: asked for once, listed once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTraffic:
    """Of one phase, all ranks and variants together, what is made ready for it included."""

    written_bytes: int = 0
    read_bytes: int = 0
    puts_count: int = 0
    """Requests that write or list, were it an object store."""
    gets_count: int = 0

    def __add__(self, other: "StorageTraffic") -> "StorageTraffic":
        return StorageTraffic(
            written_bytes=self.written_bytes + other.written_bytes,
            read_bytes=self.read_bytes + other.read_bytes,
            puts_count=self.puts_count + other.puts_count,
            gets_count=self.gets_count + other.gets_count,
        )


def traffic_by_phase(
    task: StorageTask, *, nodes: int, ranks_per_node: int
) -> dict[StoragePhaseWord, StorageTraffic]:
    """By phase that the task has. A model is written once where all nodes see the same files, else
    once a node."""
    world, states = nodes * ranks_per_node, len(task.caches)
    copies = 1 if task.place.is_shared else nodes
    found: dict[StoragePhaseWord, StorageTraffic] = {}
    if task.raw is not None:
        found["raw"] = _raw(task.raw, world, states)
    if task.batch_loading is not None:
        found["batch_loading"] = _batches(task.batch_loading, world, states)
    if task.model_loading is not None:
        found["model_loading"] = _model(task.model_loading, world, states, copies)
    if task.checkpoint_saving is not None:
        found["checkpoint_saving"] = _saves(task.checkpoint_saving, world)
    return found


def total_traffic(traffic: dict[StoragePhaseWord, StorageTraffic]) -> StorageTraffic:
    """Of all phases."""
    return sum(traffic.values(), StorageTraffic())


def set_bytes(plan: BatchPlan) -> int:
    """Of a rank's samples in one layout, at most."""
    return plan.samples * (round(plan.sample_bytes * SET_RATIO) + SET_HEADER_BYTES)


def model_file_bytes(model_bytes: int) -> int:
    """At most."""
    return _with_overhead(model_bytes)


def save_bytes(plan: CheckpointPlan, world_size: int) -> int:
    """Of one save, all ranks together, at most."""
    return _with_overhead(plan.checkpoint_bytes, world_size)


def _parts(sizes: Sequence[int]) -> int:
    return sum(max(1, -(-size // PART_BYTES)) for size in sizes)


def _raw(plan: RawPlan, world: int, states: int) -> StorageTraffic:
    """What is read is written for each state of the cache, so that nothing has seen it."""
    small_bytes = plan.small_files * SMALL_FILE_BYTES
    large = _parts([plan.file_bytes])
    of_access: dict[RawAccess, StorageTraffic] = {
        "write": StorageTraffic(written_bytes=plan.file_bytes, puts_count=large),
        "small-write": StorageTraffic(written_bytes=small_bytes, puts_count=plan.small_files),
        "metadata": StorageTraffic(
            puts_count=_METADATA_REQUESTS * plan.small_files, gets_count=plan.small_files
        ),
        "read": StorageTraffic(
            written_bytes=states * plan.file_bytes,
            read_bytes=states * plan.file_bytes,
            puts_count=states * large,
            gets_count=states * large,
        ),
        "random-read": StorageTraffic(
            written_bytes=states * plan.file_bytes,
            read_bytes=states * plan.random_reads * SMALL_FILE_BYTES,
            puts_count=states * large,
            gets_count=states * plan.random_reads,
        ),
        "small-read": StorageTraffic(
            written_bytes=states * small_bytes,
            read_bytes=states * small_bytes,
            puts_count=states * plan.small_files,
            gets_count=states * plan.small_files,
        ),
    }
    return _times(sum((of_access[each] for each in plan.accesses), StorageTraffic()), world)


def _batches(plan: BatchPlan, world: int, states: int) -> StorageTraffic:
    """A sample is an object of its own in `files`, a part of a large one in the other layouts."""
    size = plan.samples * plan.sample_bytes
    held_bytes = set_bytes(plan)
    total = StorageTraffic()
    for layout in plan.layouts:
        requests = _parts([plan.sample_bytes]) * plan.samples
        if layout != "files":
            requests = _parts([held_bytes])
        total += StorageTraffic(
            written_bytes=held_bytes,
            read_bytes=states * size,
            puts_count=requests,
            gets_count=states * requests,
        )
    return _times(total, world)


def _model(plan: ModelPlan, world: int, states: int, copies: int) -> StorageTraffic:
    """Written for each state of the cache, once for each folder that is read."""
    held_bytes = model_file_bytes(plan.model_bytes)
    total = StorageTraffic()
    for load_by in plan.load_by:
        readers, written = (world, copies) if load_by == "every-rank" else (1, 1)
        total += StorageTraffic(
            written_bytes=written * held_bytes,
            read_bytes=readers * plan.model_bytes,
            puts_count=written * _parts([held_bytes]),
            gets_count=readers * _parts([plan.model_bytes]),
        )
    return _times(total, len(plan.formats) * states)


def _saves(plan: CheckpointPlan, world: int) -> StorageTraffic:
    files = world if plan.is_sharded else 1
    saves = len(plan.formats) * plan.saves
    held_bytes = save_bytes(plan, world)
    return StorageTraffic(
        written_bytes=saves * held_bytes,
        puts_count=saves * files * _parts([-(-plan.checkpoint_bytes // files)]),
    )


def _with_overhead(size: int, files: int = 1) -> int:
    """At most: a format's own words beside the tensors."""
    return size + size // 50 + files * FILE_OVERHEAD_BYTES


def _times(traffic: StorageTraffic, count: int) -> StorageTraffic:
    return StorageTraffic(
        written_bytes=count * traffic.written_bytes,
        read_bytes=count * traffic.read_bytes,
        puts_count=count * traffic.puts_count,
        gets_count=count * traffic.gets_count,
    )
