"""How do weights and optimizer come back to what they were before communication was off?

Without communication each rank's weights go their own way. What was measured with communication on
must stay one undisturbed training, so the state is copied before such a block and put back after.
Each rank copies the part it holds. Frozen weights don't change.
"""

from typing import Any

import torch

from broadgauge.probes.devices import Device
from broadgauge.probes.training.shards import own_part

ROOM_FACTOR = 1.5


class Snapshot:
    """A copy beside the original where there is room, else in the host's memory."""

    def __init__(self, model: Any, optimizer: Any, device: Device) -> None:
        self._live = [own_part(tensor) for tensor in _state_tensors(model, optimizer)]
        size_bytes = sum(tensor.numel() * tensor.element_size() for tensor in self._live)
        has_room = device.free_memory_bytes() > ROOM_FACTOR * size_bytes
        self._copies = [
            tensor.clone() if has_room else tensor.to("cpu", copy=True) for tensor in self._live
        ]

    def restore(self) -> None:
        with torch.no_grad():
            for live, copy in zip(self._live, self._copies, strict=True):
                live.copy_(copy)


def _state_tensors(model: Any, optimizer: Any) -> list[Any]:
    states = (value for state in optimizer.state.values() for value in state.values())
    trained = (parameter for parameter in model.parameters() if parameter.requires_grad)
    return [*trained, *(value for value in states if torch.is_tensor(value))]
