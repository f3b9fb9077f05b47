"""FSDP and HSDP: weights are gathered before a layer is computed, gradients scattered after.

Source: Zhao et al. 2023 (VLDB 16(12)), sections 3.3 and 4; torch.distributed.fsdp: BACKWARD_PRE,
limit_all_gathers (two gathers in flight), the root unit stays gathered between its passes.
"""

from collections.abc import Sequence
from typing import Any

from broadgauge.predict.timeline.strategies.work import (
    Work,
    backward_layer,
    begin,
    communicate,
    finish,
    forward_layer,
    head,
    scaled,
)
from broadgauge.predict.timeline.timeline import Steps

REDUCES = ("reduce", "replicate", "reduce root", "replicate root")
GATHERS = ("gather root", "gather forward", "gather backward")


def program(steps: Steps, work: Work) -> None:
    """A step: micro-batches, of which all or only the last reduce their gradients.

    Where weights are gathered once a step it is the last that gathers them, not the first as in
    truth: one micro-batch ends before the next begins, so that each is as long as the other.
    """
    early = scaled(work, REDUCES, work.counts["reduces_each"])
    early = scaled(early, GATHERS, work.counts["gathers_each"])

    def body(inner: Steps, carried: Sequence[Any]) -> Sequence[Any]:
        return [_micro_batch(inner, early, carried[0])]

    (ready,) = steps.repeat(work.counts["micro_batches"] - 1, body, [begin(steps, work)])
    finish(steps, work, after=[_micro_batch(steps, work, ready)])


def _micro_batch(steps: Steps, work: Work, ready: Any) -> Any:
    root = communicate(steps, work, "gather root", after=[ready])
    end = _forward(steps, work, root)
    first = communicate(steps, work, "gather backward", after=[end])
    end = head(steps, work, after=[end])
    end = _backward(steps, work, end, first)
    reduced = _reduce(steps, work, end, suffix=" root")
    return steps.join([end, reduced])


def _forward(steps: Steps, work: Work, root: Any) -> Any:
    """The next layer is gathered beside this one, once the one before it is done and freed."""

    def body(inner: Steps, carried: Sequence[Any]) -> Sequence[Any]:
        gathered, before = carried
        coming = communicate(inner, work, "gather forward", after=[before])
        end = forward_layer(inner, work, after=[gathered, before], beside=("gather forward",))
        return [coming, end]

    gathered = communicate(steps, work, "gather forward", after=[root])
    gathered, end = steps.repeat(work.counts["layers"] - 1, body, [gathered, root])
    return forward_layer(steps, work, after=[gathered, end])


def _backward(steps: Steps, work: Work, end: Any, gathered: Any) -> Any:
    """The layer before is gathered beside this one, whose gradients are reduced beside that one."""
    beside = ("gather backward", "reduce", "replicate")

    def body(inner: Steps, carried: Sequence[Any]) -> Sequence[Any]:
        gathered, before = carried
        coming = communicate(inner, work, "gather backward", after=[before])
        end = backward_layer(inner, work, after=[gathered, before], beside=beside)
        _reduce(inner, work, end)
        return [coming, end]

    gathered, end = steps.repeat(work.counts["layers"] - 1, body, [gathered, end])
    end = backward_layer(steps, work, after=[gathered, end], beside=beside[1:])
    _reduce(steps, work, end)
    return end


def _reduce(steps: Steps, work: Work, end: Any, suffix: str = "") -> Any:
    """Scattered over the shards, and over nodes where each holds a whole model."""
    for name in (f"reduce{suffix}", f"replicate{suffix}"):
        if name in work.collectives:
            end = communicate(steps, work, name, after=[end])
    return end
