"""How does DDP train, and how is its all-reduce switched off?

A DDP module takes one communication hook for its life. The trainer divides the loss by the number
of ranks, therefore the sum over ranks is the mean gradient and the hook needs no pass of its own
over the bucket. Source: torch.distributed.algorithms.ddp_comm_hooks, `allreduce_hook`,
`noop_hook` and `bf16_compress_hook`.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from broadgauge.messages.tasks import TrainTask
from broadgauge.probes.training.blocks import compile_parts
from broadgauge.probes.training.communication import Communication
from broadgauge.probes.training.types import torch_type


class SingleRank:
    """One rank: the plain model, nothing is sent."""

    def __init__(self, model: Any, task: TrainTask, device: Any) -> None:
        if task.compile:
            compile_parts(model)
        self.model = model.to_empty(device=device)
        self.communication = Communication()
        self._device_type, self._dtype = device.type, task.dtype

    def arithmetic(self) -> AbstractContextManager[Any]:
        return autocast(self._device_type, self._dtype)

    def without_reduction(self) -> AbstractContextManager[Any]:
        return nullcontext()


class Ddp:
    """Every rank has the whole model; buckets of gradients are summed during the backward pass."""

    def __init__(self, model: Any, task: TrainTask, device: Any) -> None:
        cap_bytes = task.bucket_cap_bytes
        if task.compile:
            compile_parts(model)
        self.communication = Communication()
        self.model = DistributedDataParallel(
            model.to_empty(device=device),
            bucket_cap_mb=None if cap_bytes is None else cap_bytes / 2**20,
            gradient_as_bucket_view=True,
        )
        reduction = Reduction(self.communication, torch_type(task.gradient_dtype))
        self.model.register_comm_hook(reduction, reduce_bucket)
        self._device_type, self._dtype = device.type, task.dtype

    def arithmetic(self) -> AbstractContextManager[Any]:
        return autocast(self._device_type, self._dtype)

    def without_reduction(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self.model.no_sync()
        return context


class Reduction:
    """What the hook needs. It knows nothing of the module: that holds the hook where Python's
    garbage collector does not look, so a way back would keep every trial's model alive."""

    def __init__(self, communication: Communication, gradient_dtype: Any) -> None:
        self.communication, self.gradient_dtype = communication, gradient_dtype


def reduce_bucket(
    reduction: Reduction, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """DDP's communication hook: a future of the gradients, summed over the ranks or as they are.

    Rounded in either case, where gradients travel in another type than they are kept in.
    """
    gradients = bucket.buffer()
    message = gradients.to(reduction.gradient_dtype)  # themselves, where the types are the same
    if not reduction.communication.is_on:
        future = torch.futures.Future()
        future.set_result(_put_back(message, gradients))
        return future
    reduction.communication.count("all_reduce", message)
    work = dist.all_reduce(message, async_op=True)
    return work.get_future().then(lambda future: _put_back(future.value()[0], gradients))


def autocast(device_type: str, dtype: str) -> AbstractContextManager[Any]:
    context: AbstractContextManager[Any] = torch.autocast(
        device_type, dtype=torch.bfloat16, enabled=dtype == "bfloat16"
    )
    return context


def _put_back(message: Any, gradients: Any) -> Any:
    return message if message.dtype == gradients.dtype else gradients.copy_(message)
