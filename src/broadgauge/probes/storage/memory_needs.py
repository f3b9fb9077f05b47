"""Is there memory to save a state or to load a model, on this node?"""

from broadgauge.messages.storage import CheckpointPhase, LoadPhase
from broadgauge.probes.devices import CpuDevice, Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.trial import RefusedError


def refuse_no_memory_to_save(
    phase: CheckpointPhase, identity: RankIdentity, device: Device
) -> None:
    """What is saved, and a second state beside it: gradients, as AdamW's first step makes its
    moments, then what is staged or read back. On the host of GPUs one copy of what a rank saves."""
    own_bytes = phase.files_bytes / (identity.world_size if phase.is_sharded else 1)
    saved_bytes = own_bytes if phase.state_dict == "sharded" else phase.files_bytes
    if device.torch_device.type == "cpu":
        gathered_bytes = saved_bytes - own_bytes  # of rank 0 alone
        host_bytes = 2 * own_bytes * identity.local_world_size + gathered_bytes
    else:
        _refuse_more("a checkpoint", phase.files_bytes, 2 * own_bytes, device)
        num_writers = identity.local_world_size if phase.state_dict == "sharded" else 1
        host_bytes = saved_bytes * num_writers
    _refuse_more("a checkpoint", phase.files_bytes, host_bytes, CpuDevice())


def refuse_no_memory_to_load(
    phase: LoadPhase,
    identity: RankIdentity,
    device: Device,
    *,
    largest_bytes: int,
    is_for_all: bool,
    is_on_memory: bool,
) -> None:
    """What a rank holds, and a whole tensor of `largest_bytes`; on the host also what it reads
    whole, or all tensors where it writes them, of safetensors both twice: the file and its tensors
    (save_file copies them before safetensors 0.6). Pages of mapped files are the kernel's.
    `is_for_all`: does node 0 write for all? Else each node writes. `is_on_memory`: are the files
    memory themselves?"""
    own_bytes = phase.files_bytes / (identity.world_size if phase.is_sharded else 1)
    is_first_node = identity.node == 0
    num_readers = int(is_first_node) if phase.is_broadcast else identity.local_world_size
    copies = 2 if phase.format == "safetensors" else 1
    is_read_whole = phase.format != "distributed" and not phase.is_mapped
    read_bytes = phase.files_bytes * copies * num_readers if is_read_whole else 0
    written_bytes = phase.files_bytes * copies if is_first_node or not is_for_all else 0
    host_bytes: float = max(read_bytes, written_bytes)
    host_bytes += largest_bytes * identity.local_world_size + phase.files_bytes * is_on_memory
    if device.torch_device.type == "cpu":
        host_bytes += own_bytes * identity.local_world_size
    else:
        _refuse_more("a model", phase.files_bytes, own_bytes + largest_bytes, device)
    _refuse_more("a model", phase.files_bytes, host_bytes, CpuDevice())


def _refuse_more(what: str, size_bytes: int, needed_bytes: float, device: Device) -> None:
    free_bytes = device.free_memory_bytes()
    if needed_bytes > free_bytes:
        where = "of the GPU" if device.torch_device.type == "cuda" else "of the host"
        raise RefusedError(
            f"out of memory: {what} of {size_bytes / 1e9:.2f} GB needs "
            f"{needed_bytes / 1e9:.2f} GB {where}; {free_bytes / 1e9:.2f} GB are free"
        )
