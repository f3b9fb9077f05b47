"""Is there memory to save a state or to load a model, on this node?"""

import os
from pathlib import Path

from broadgauge.messages.storage import CheckpointPhase, LoadPhase
from broadgauge.messages.storage_memory import (
    RanksOfNode,
    bytes_shared_with_process,
    bytes_to_load,
    bytes_to_save,
    own_share_bytes,
)
from broadgauge.probes.devices import CpuDevice, Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.trial import RefusedError

SHARED = Path("/dev/shm")
"""Where torch makes memory that processes share. Source: shm_open(3)."""


def refuse_no_memory_to_save(
    phase: CheckpointPhase, identity: RankIdentity, device: Device
) -> None:
    """On GPUs the state, and a second one beside it, is theirs. What a process is sent is in shared
    memory."""
    ranks = _ranks_of_node(identity, device)
    if phase.background == "process":
        _refuse_more_shared(bytes_shared_with_process(phase, ranks))
    if ranks.is_on_gpus:
        of_gpu = 2 * own_share_bytes(phase, ranks)
        _refuse_more("a checkpoint", phase.files_bytes, of_gpu, device)
    _refuse_more("a checkpoint", phase.files_bytes, bytes_to_save(phase, ranks), CpuDevice())


def refuse_no_memory_to_load(
    phase: LoadPhase,
    identity: RankIdentity,
    device: Device,
    *,
    largest_bytes: int,
    is_for_all: bool,
    is_on_memory: bool,
) -> None:
    """As `bytes_to_load` takes them. On GPUs what a rank holds, and a whole tensor, is theirs."""
    ranks = _ranks_of_node(identity, device)
    host_bytes = bytes_to_load(
        phase,
        ranks,
        largest_bytes=largest_bytes,
        is_for_all=is_for_all,
        is_on_memory=is_on_memory,
    )
    if ranks.is_on_gpus:
        of_gpu = own_share_bytes(phase, ranks) + largest_bytes
        _refuse_more("a model", phase.files_bytes, of_gpu, device)
    _refuse_more("a model", phase.files_bytes, host_bytes, CpuDevice())


def _ranks_of_node(identity: RankIdentity, device: Device) -> RanksOfNode:
    return RanksOfNode(
        world_size=identity.world_size,
        ranks_per_node=identity.local_world_size,
        is_first=identity.node == 0,
        is_on_gpus=device.torch_device.type != "cpu",
    )


def _refuse_more_shared(needed_bytes: float) -> None:
    """Of all ranks of this node."""
    free_bytes = 0
    if SHARED.is_dir():
        status = os.statvfs(SHARED)
        free_bytes = status.f_bavail * status.f_frsize
    if needed_bytes > free_bytes:
        raise RefusedError(
            f"`asynchronous: process` needs {needed_bytes / 1e9:.2f} GB in {SHARED}, for this save "
            f"and the last one, and {free_bytes / 1e9:.2f} GB are free: make it larger (Docker: "
            "--shm-size, or --ipc=host), or `asynchronous: thread`"
        )


def _refuse_more(what: str, size_bytes: int, needed_bytes: float, device: Device) -> None:
    free_bytes = device.free_memory_bytes()
    if needed_bytes > free_bytes:
        where = "of the GPU" if device.torch_device.type == "cuda" else "of the host"
        raise RefusedError(
            f"out of memory: {what} of {size_bytes / 1e9:.2f} GB needs "
            f"{needed_bytes / 1e9:.2f} GB {where}; {free_bytes / 1e9:.2f} GB are free"
        )
