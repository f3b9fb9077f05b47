"""Which state does a training save? Weights and AdamW's moments, held as the strategy holds them.

Source of the parts and of their names: torch 2.11, torch.distributed.checkpoint.state_dict,
`get_state_dict`, which users' scripts call.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from broadgauge.messages.storage import CheckpointPhase
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage.held_model import RandomBits, empty_model
from broadgauge.probes.storage.memory_needs import refuse_no_memory_to_save
from broadgauge.probes.training.shards import own_part


class TrainingState:
    """What one rank holds."""

    def __init__(
        self, phase: CheckpointPhase, identity: RankIdentity, device: Device, seed: int
    ) -> None:
        """Raises RefusedError where there is no memory for it."""
        refuse_no_memory_to_save(phase, identity, device)
        self._model = empty_model(phase.model, torch.float32, device, is_sharded=phase.is_sharded)
        self._optimizer = None
        if phase.has_optimizer_state:
            self._optimizer = torch.optim.AdamW(self._model.parameters())
        # Replicas hold the same, shards each their own.
        bits = RandomBits(seed * identity.world_size + identity.rank * phase.is_sharded)
        for number, tensor in enumerate(each_tensor(self.named())):
            held = own_part(tensor)
            if held.dim() and held.dtype == torch.float32:  # none is AdamW's number of steps
                bits.fill(held, number)

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
