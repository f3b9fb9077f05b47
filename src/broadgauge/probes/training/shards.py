"""Which part of a tensor does this rank hold? The whole of a plain one, a shard of FSDP's."""

from typing import Any

import torch


def is_sharded(tensor: Any) -> bool:
    """Is it a DTensor? Asked by what it can do: importing its class takes as long as torch."""
    return hasattr(tensor, "to_local")


def own_part(tensor: Any) -> Any:
    """What this rank keeps in memory: the same memory, not a copy."""
    with torch.no_grad():
        return tensor.to_local() if is_sharded(tensor) else tensor.detach()


def own_part_of(whole: Any, tensor: Any) -> Any:
    """Of a tensor that is whole on this rank, what it holds of `tensor`: nothing is copied."""
    if not is_sharded(tensor):
        return whole
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    shape, offsets = compute_local_shape_and_global_offset(
        tensor.shape, tensor.device_mesh, tensor.placements
    )
    for axis, (length, offset) in enumerate(zip(shape, offsets, strict=True)):
        whole = whole.narrow(axis, offset, length)
    return whole


def set_whole(tensor: Any, whole: Any) -> None:
    """Gives the tensor these values; every rank has them all and takes its part."""
    own_part(tensor).copy_(own_part_of(whole, tensor))


def whole_of(tensor: Any) -> Any:
    """All ranks' parts together: a collective where the tensor is sharded, on its mesh's device."""
    with torch.no_grad():
        if not is_sharded(tensor):
            return tensor.detach()
        return tensor.to(tensor.device_mesh.device_type).full_tensor()
