"""How is the training spread over the ranks? What each way must give the trainer, and which there
are."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from broadgauge.messages.tasks import TrainTask
from broadgauge.messages.vocabulary import assert_never
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.communication import Communication
from broadgauge.probes.training.ddp import Ddp, SingleRank


class Strategy(Protocol):
    """One rank's model, spread over the ranks, and its communication.

    Gradients are summed over the ranks: the trainer divides the loss.
    """

    @property
    def model(self) -> Any:
        """Called with tokens and the tokens that follow; its parameters are the optimizer's."""
        ...

    @property
    def communication(self) -> Communication: ...

    def arithmetic(self) -> AbstractContextManager[Any]:
        """The forward pass in here computes in the task's `dtype`."""
        ...

    def without_reduction(self) -> AbstractContextManager[Any]:
        """Forward and backward passes in here add to the gradients and send none of them."""
        ...


Build = Callable[[Any, TrainTask, Any], Strategy]
"""Of a model on the meta device, the task and the torch device. The weights are still to be
drawn (weights.py)."""


def spread(model: Any, task: TrainTask, identity: RankIdentity, device: Device) -> Strategy:
    """One rank alone trains the plain model, as a user would, but for FSDP: its arithmetic in
    bfloat16 is its own, so that its scaling is measured against the same on a mesh of one."""
    build: Build
    match task.strategy:
        case "fsdp" | "hsdp":
            # Its import takes as long as torch's: only a trial that shards waits for it.
            from broadgauge.probes.training.fsdp import Fsdp

            build = functools.partial(Fsdp, shard_ranks=state_shards(task, identity))
        case "ddp":
            build = Ddp if identity.world_size > 1 else SingleRank
        case unknown:
            assert_never(unknown)
    return build(model, task, device.torch_device)


def state_shards(task: TrainTask, identity: RankIdentity) -> int:
    """Over how many ranks are weights, gradients and the optimizer's state shared out?"""
    match task.strategy:
        case "fsdp":
            return identity.world_size
        case "hsdp":
            return task.shard_ranks or identity.local_world_size
        case "ddp":
            return 1
        case unknown:
            assert_never(unknown)
