"""How does DDP train, and how is its all-reduce switched off?

A DDP module takes one communication hook for its life. The trainer divides the loss by the number
of ranks, therefore the sum over ranks is the mean gradient and the hook needs no pass of its own
over the bucket. Source: torch.distributed.algorithms.ddp_comm_hooks, `allreduce_hook`,
`noop_hook` and `bf16_compress_hook`.
"""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from broadgauge.messages.tasks import TrainTask
from broadgauge.probes.training.communication import Communication
from broadgauge.probes.training.types import torch_type

WATCHDOG_S = 0.5
"""It looks every tenth of a second. Source: torch 2.11, `kWatchdogThreadSleepMillis`."""


class SingleRank:
    """One rank: the plain model, nothing is sent."""

    def __init__(self, model: Any, task: TrainTask, device: Any) -> None:
        self.model = model.to_empty(device=device)
        self.communication = Communication()
        self._device_type, self._dtype = device.type, task.dtype

    def arithmetic(self) -> AbstractContextManager[Any]:
        return autocast(self._device_type, self._dtype)

    def without_reduction(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def close(self) -> None:
        """There is nothing."""


class Ddp:
    """Every rank has the whole model; buckets of gradients are summed during the backward pass."""

    def __init__(self, model: Any, task: TrainTask, device: Any) -> None:
        cap_bytes = task.bucket_cap_bytes
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

    def close(self) -> None:
        """Nobody waits for the hook's all_reduces, only for their futures, so that NCCL's group
        keeps their tensors, which are all gradients, until its watchdog has seen them done and
        another collective comes; and without one beyond its own end. Source: torch 2.11,
        ProcessGroupNCCL.cpp, `shelvesToUnstash_`; seen on two H200s."""
        if self._device_type == "cuda":
            time.sleep(WATCHDOG_S)
            dist.all_reduce(torch.zeros(1, device=self._device_type))


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
