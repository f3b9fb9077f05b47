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


def set_whole(tensor: Any, whole: Any) -> None:
    """Gives the tensor these values; every rank has them all and takes its part."""
    if is_sharded(tensor):
        from torch.distributed.tensor import distribute_tensor

        # Without a source rank nothing is sent.
        whole = distribute_tensor(
            whole, tensor.device_mesh, tensor.placements, src_data_rank=None
        ).to_local()
    own_part(tensor).copy_(whole)


def whole_of(tensor: Any) -> Any:
    """All ranks' parts together: a collective where the tensor is sharded, on its mesh's device."""
    with torch.no_grad():
        if not is_sharded(tensor):
            return tensor.detach()
        return tensor.to(tensor.device_mesh.device_type).full_tensor()
