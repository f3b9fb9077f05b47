"""What is saved of a state: all of it gathered on the first rank, or this rank's part of it?

A state is nested mappings and sequences of tensors and plain values, as `state_dict()` gives.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from broadgauge.probes.storage.accounting import Parts


def map_tensors(state: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same nesting, with each tensor changed."""
    if isinstance(state, torch.Tensor):
        return change(state)
    if isinstance(state, Mapping):
        return {key: map_tensors(value, change) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(map_tensors(value, change) for value in state)
    return state


def tensors_of(state: Any, at: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Each with its path, `model/layers.0.weight`; values that are no tensors are left out."""
    if isinstance(state, torch.Tensor):
        yield at, state
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from tensors_of(value, f"{at}/{key}" if at else str(key))
    elif isinstance(state, (list, tuple)):
        for index, value in enumerate(state):
            yield from tensors_of(value, f"{at}/{index}" if at else str(index))


def gathered(state: Any, parts: Parts, *, is_first: bool) -> Any:
    """All of it in the first rank's memory; None elsewhere. A collective, tensor by tensor, so that
    a GPU holds one of them at a time."""

    def take(tensor: torch.Tensor) -> torch.Tensor | None:
        with parts.timed("gather"):
            whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            _wait_for(whole)
        if not is_first:
            return None
        return _to_host(whole, parts)

    whole = map_tensors(state, take)
    return whole if is_first else None


def local_parts(state: Any, parts: Parts) -> Any:
    """This rank's part of each tensor, in the host's memory."""

    def take(tensor: torch.Tensor) -> torch.Tensor:
        return _to_host(tensor.to_local() if isinstance(tensor, DTensor) else tensor, parts)

    return map_tensors(state, take)


def _to_host(tensor: torch.Tensor, parts: Parts) -> torch.Tensor:
    if tensor.device.type == "cpu":
        return tensor.detach()
    with parts.timed("device_to_host"):
        return tensor.detach().to("cpu")


def _wait_for(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)


def local_bytes(state: Any) -> int:
    """Of the tensors on this rank."""
    total = 0
    for _, tensor in tensors_of(state):
        held = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        total += held.numel() * held.element_size()
    return total


def whole_bytes(state: Any) -> int:
    """Of the tensors as all ranks together hold them."""
    return sum(tensor.numel() * tensor.element_size() for _, tensor in tensors_of(state))
