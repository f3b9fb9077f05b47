"""Which state does a training save? Weights and AdamW's moments, held as the strategy holds them.

Their bits are random, so that no file system saves by compressing them: some are no numbers, and
nobody computes with them. Source of the parts and of their names: torch 2.11,
torch.distributed.checkpoint.state_dict, `get_state_dict`, which users' scripts call.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from broadgauge.messages.storage import CheckpointPhase
from broadgauge.probes.devices import CpuDevice, Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.building import model_of
from broadgauge.probes.training.shards import own_part
from broadgauge.probes.trial import RefusedError

POOL_ELEMENTS = 1 << 22
"""Random bits that are made; the state repeats them, each tensor from another place on."""


class TrainingState:
    """What one rank holds."""

    def __init__(
        self, phase: CheckpointPhase, identity: RankIdentity, device: Device, seed: int
    ) -> None:
        """Raises RefusedError where there is no memory for it."""
        refuse_no_memory(phase, identity, device)
        with torch.device("meta"):
            model = model_of(phase.model)
        if phase.is_sharded:
            _shard(model, device)
        self._model = model.to_empty(device=device.torch_device)
        self._optimizer = None
        if phase.has_optimizer_state:
            self._optimizer = torch.optim.AdamW(self._model.parameters())
        # Replicas hold the same, shards each their own.
        _fill(self.named(), seed * identity.world_size + identity.rank * phase.is_sharded)

    def named(self) -> dict[str, Any]:
        """The live tensors by their names: no copies."""
        from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict

        if self._optimizer is None:
            return {"model": get_model_state_dict(self._model)}
        model, optimizer = get_state_dict(self._model, self._optimizer)
        return {"model": model, "optimizer": optimizer}


def each_tensor(state: Any) -> Iterator[Any]:
    """In the order of the names, which is every rank's."""
    if torch.is_tensor(state):
        yield state
    elif isinstance(state, dict):
        for value in state.values():
            yield from each_tensor(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from each_tensor(value)


def with_tensors(state: Any, change: Callable[[Any], Any]) -> Any:
    """The same names, with what becomes of each tensor."""
    if torch.is_tensor(state):
        return change(state)
    if isinstance(state, dict):
        return {name: with_tensors(value, change) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(with_tensors(value, change) for value in state)
    return state


def is_same(ours: Any, theirs: Any) -> bool:
    """Is every bit of the one that of the other? Of two plain tensors."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    mine, other = (each.detach().cpu().contiguous().view(-1) for each in (ours, theirs))
    return bool(torch.equal(mine.view(torch.uint8), other.view(torch.uint8)))


def refuse_no_memory(phase: CheckpointPhase, identity: RankIdentity, device: Device) -> None:
    """What is saved, and a second state beside it: gradients, as AdamW's first step makes its
    moments, then what is staged or read back. On the host of GPUs one copy of what a rank saves."""
    shards = identity.world_size if phase.is_sharded else 1
    own_bytes = phase.files_bytes / shards
    saved_bytes = own_bytes if phase.state_dict == "sharded" else phase.files_bytes
    if device.torch_device.type == "cpu":
        gathered_bytes = saved_bytes - own_bytes  # of rank 0 alone
        _refuse_more(phase, 2 * own_bytes * identity.local_world_size + gathered_bytes, device)
        return
    _refuse_more(phase, 2 * own_bytes, device)
    num_writers = identity.local_world_size if phase.state_dict == "sharded" else 1
    _refuse_more(phase, saved_bytes * num_writers, CpuDevice())


def _refuse_more(phase: CheckpointPhase, needed_bytes: float, device: Device) -> None:
    free_bytes = device.free_memory_bytes()
    if needed_bytes > free_bytes:
        where = "of the GPU" if device.torch_device.type == "cuda" else "of the host"
        raise RefusedError(
            f"out of memory: a checkpoint of {phase.files_bytes / 1e9:.2f} GB needs "
            f"{needed_bytes / 1e9:.2f} GB {where}; {free_bytes / 1e9:.2f} GB are free"
        )


def _shard(model: Any, device: Device) -> None:
    """As FSDP does: each block and the rest is a unit. Its import takes as long as torch's."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.torch_device.type, (dist.get_world_size(),))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def _fill(state: dict[str, Any], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(-(2**31), 2**31, (POOL_ELEMENTS,), dtype=torch.int32, generator=generator)
    for number, tensor in enumerate(each_tensor(state)):
        held = own_part(tensor)
        if held.dim() == 0 or held.dtype != torch.float32:
            continue  # AdamW's number of steps
        pool = bits.roll(number).to(held.device)
        flat = held.view(torch.int32).view(-1)
        for start in range(0, len(flat), POOL_ELEMENTS):
            part = flat[start : start + POOL_ELEMENTS]
            part.copy_(pool[: len(part)])
