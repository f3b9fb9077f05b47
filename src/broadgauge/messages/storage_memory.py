"""How much of a node's memory does a phase on a storage take, beside what any rank's process does?

Ranks hold it against what is free before they begin, and pods ask for it before there is a rank.
"""

from dataclasses import dataclass

from broadgauge.messages.storage import BatchesPhase, CheckpointPhase, LoadPhase

WORKER_BYTES = 16 << 20
"""Of a process that loads batches, beside the pages that it shares with its rank. Measured: torch
2.11, `DataLoader` with two workers, 2026-11-29: 11 MiB."""

SAVES_HELD_BY_PROCESS = 2
"""It keeps what it was sent until it has received the next save's. Source: torch 2.11,
_async_process_executor.py, `_checkpointing_subprocess`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksOfNode:
    """Whose memory is asked about."""

    world_size: int
    ranks_per_node: int
    is_first: bool
    """Node 0?"""
    is_on_gpus: bool


def bytes_to_save(phase: CheckpointPhase, ranks: RanksOfNode) -> float:
    """What is saved, and a second state beside it: gradients, as AdamW's first step makes its
    moments, then what is staged or read back. On the host of GPUs one copy of what a rank saves.
    Of safetensors the weights once more: save_file copies them before safetensors 0.6. Where a
    process saves, that once more."""
    own_bytes = own_share_bytes(phase, ranks)
    saved_bytes, num_writers = _written(phase, ranks)
    copied_bytes = 0.0
    if phase.format == "safetensors":
        copied_bytes = saved_bytes / (3 if phase.has_optimizer_state else 1)
    elif phase.background == "process":
        copied_bytes = saved_bytes
    if ranks.is_on_gpus:
        return (saved_bytes + copied_bytes) * num_writers
    gathered_bytes = saved_bytes - own_bytes  # of rank 0 alone
    return 2 * own_bytes * ranks.ranks_per_node + gathered_bytes + copied_bytes * num_writers


def bytes_shared_with_process(phase: CheckpointPhase, ranks: RanksOfNode) -> float:
    """Of all ranks, in /dev/shm."""
    saved_bytes, num_writers = _written(phase, ranks)
    return SAVES_HELD_BY_PROCESS * saved_bytes * num_writers


def _written(phase: CheckpointPhase, ranks: RanksOfNode) -> tuple[float, int]:
    """By each rank that writes, and how many do."""
    if phase.state_dict == "sharded":
        return own_share_bytes(phase, ranks), ranks.ranks_per_node
    return phase.files_bytes, 1


def bytes_to_load(
    phase: LoadPhase,
    ranks: RanksOfNode,
    *,
    largest_bytes: int,
    is_for_all: bool,
    is_on_memory: bool,
) -> float:
    """What a rank holds, and a whole tensor of `largest_bytes`; on the host also what it reads
    whole, or all tensors where it writes them, of safetensors both twice: the file and its tensors
    (save_file copies them before safetensors 0.6). Pages of mapped files are the kernel's.
    `is_for_all`: does node 0 write for all? Else each node writes. `is_on_memory`: are the files
    memory themselves?"""
    num_readers = int(ranks.is_first) if phase.is_broadcast else ranks.ranks_per_node
    copies = 2 if phase.format == "safetensors" else 1
    is_read_whole = phase.format != "distributed" and not phase.is_mapped
    read_bytes = phase.files_bytes * copies * num_readers if is_read_whole else 0
    written_bytes = phase.files_bytes * copies if ranks.is_first or not is_for_all else 0
    host_bytes: float = max(read_bytes, written_bytes)
    host_bytes += largest_bytes * ranks.ranks_per_node + phase.files_bytes * is_on_memory
    if not ranks.is_on_gpus:
        host_bytes += own_share_bytes(phase, ranks) * ranks.ranks_per_node
    return host_bytes


def bytes_to_load_batches(phase: BatchesPhase, ranks: RanksOfNode) -> float:
    """Of all workers, with the batches that they are ahead and the one that they make."""
    ahead_bytes = (phase.prefetch + 1) * phase.batch_per_rank * phase.sample_bytes
    return ranks.ranks_per_node * phase.workers * (WORKER_BYTES + ahead_bytes)


def own_share_bytes(phase: CheckpointPhase | LoadPhase, ranks: RanksOfNode) -> float:
    """That a rank holds of it."""
    return phase.files_bytes / (ranks.world_size if phase.is_sharded else 1)
