"""How is a model held by ranks that only save or load it, and with which content?

Its bits are random, so that no file system saves by compressing them: some are no numbers, and
nobody computes with them.
"""

from typing import Any

import torch

from broadgauge.messages.model_shape import ModelShape
from broadgauge.probes.devices import Device
from broadgauge.probes.training.building import model_of

POOL_BYTES = 1 << 24
"""Random bytes that are made; tensors repeat them, each repetition from another place on, so that
no file system saves by finding blocks that are equal."""
BLOCKS_APART = 100_003
"""By how many 32-bit words a tensor's repetitions differ in their place: more than a model has
tensors."""


def empty_model(shape: ModelShape, dtype: Any, device: Device, *, is_sharded: bool) -> Any:
    """Memory for it, of this rank's shard or of all of it, with nothing in it. `dtype`: torch's."""
    with torch.device("meta"):
        model = model_of(shape).to(dtype)
    if is_sharded:
        # Its import takes as long as torch's.
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh

        from broadgauge.probes.training.fsdp import shard_units

        mesh = init_device_mesh(device.torch_device.type, (dist.get_world_size(),))
        model = shard_units(model, {}, mesh=mesh)
    return model.to_empty(device=device.torch_device)


def largest_tensor_bytes(shape: ModelShape, dtype: Any) -> int:
    with torch.device("meta"):
        model = model_of(shape).to(dtype)
    return max(int(parameter.nbytes) for parameter in model.parameters())


class RandomBits:
    """The same for the same seed, on every rank."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._pool = torch.randint(
            -(2**31), 2**31, (POOL_BYTES // 4,), dtype=torch.int32, generator=generator
        ).view(torch.uint8)

    def fill(self, tensor: Any, number: int) -> None:
        """A contiguous one, with the bits of the tensor of this number."""
        pool = self._pool.to(tensor.device)
        flat = tensor.view(-1).view(torch.uint8)
        for start in range(0, len(flat), POOL_BYTES):
            part = flat[start : start + POOL_BYTES]
            begin = 4 * (number + start // POOL_BYTES * BLOCKS_APART) % POOL_BYTES
            head = pool[begin : begin + len(part)]
            part[: len(head)].copy_(head)
            part[len(head) :].copy_(pool[: len(part) - len(head)])

    def tensor(self, shape: Any, dtype: Any, number: int) -> Any:
        """A new one on the host."""
        made = torch.empty(shape, dtype=dtype)
        self.fill(made, number)
        return made
