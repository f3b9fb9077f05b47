"""How is the training spread over the ranks? What each way must give the trainer, and which there
are."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from broadgauge.messages.strategies import STRATEGIES, Split, split_of
from broadgauge.messages.tasks import TrainTask
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.communication import Communication
from broadgauge.probes.training.ddp import Ddp, SingleRank
from broadgauge.probes.trial import RefusedError


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

    def close(self) -> None:
        """Has torch let go of what it would keep beyond the model's life."""
        ...


def spread(model: Any, task: TrainTask, identity: RankIdentity, device: Device) -> Strategy:
    """Of a model on the meta device, whose weights are still to be drawn (weights.py).

    One rank alone trains the plain model, as a user would, unless the strategy shards: that one's
    arithmetic in bfloat16 is its own, so that its scaling is measured against the same on a mesh of
    one.
    """
    if STRATEGIES[task.strategy].is_sharded:
        # Its import takes as long as torch's: only a trial that shards waits for it.
        from broadgauge.probes.training.fsdp import Fsdp

        return Fsdp(model, task, device.torch_device, split(task, identity))
    build: Callable[..., Strategy] = Ddp if identity.world_size > 1 else SingleRank
    return build(model, task, device.torch_device)


def split(task: TrainTask, identity: RankIdentity) -> Split:
    """Over how many ranks are weights, gradients and the optimizer's state shared out? Raises
    RefusedError."""
    try:
        return split_of(
            task.strategy,
            world_size=identity.world_size,
            ranks_per_node=identity.local_world_size,
            shard_ranks=task.shard_ranks,
        )
    except ValueError as error:
        raise RefusedError(str(error)) from error
