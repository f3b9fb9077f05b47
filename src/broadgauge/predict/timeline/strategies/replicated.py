"""DDP: every rank holds the model; gradients are reduced in buckets beside the backward pass.

Source: Li et al. 2020 (VLDB 13(12)), sections 3.2 and 4: buckets in reverse order of use, 1 MiB
first, then 25 MiB; under no_sync only the last micro-batch reduces.
"""

from collections.abc import Sequence
from dataclasses import replace
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
from broadgauge.predict.timeline.timeline import Steps, Stream

REDUCES = ("first bucket", "bucket", "last bucket", "all gradients")


def program(steps: Steps, work: Work) -> None:
    """A step: micro-batches, of which all or only the last reduce their gradients."""
    reduces = work.counts["reduces_each"]
    early = replace(
        scaled(work, REDUCES, reduces),
        bucket_copy_s=work.bucket_copy_s * reduces,
        gradients_copy_s=work.gradients_copy_s * reduces,
    )

    def body(inner: Steps, carried: Sequence[Any]) -> Sequence[Any]:
        return [_micro_batch(inner, early, carried[0])]

    (ready,) = steps.repeat(work.counts["micro_batches"] - 1, body, [begin(steps, work)])
    finish(steps, work, after=[_micro_batch(steps, work, ready)])


def _micro_batch(steps: Steps, work: Work, ready: Any) -> Any:
    def forward(inner: Steps, carried: Sequence[Any]) -> Sequence[Any]:
        return [forward_layer(inner, work, after=carried)]

    (end,) = steps.repeat(work.counts["layers"], forward, [ready])
    end = head(steps, work, after=[end])
    communicate(steps, work, "first bucket", after=[end])
    slices = work.counts["buckets"]
    ratio = work.counts["layers"] / slices

    def backward(inner: Steps, carried: Sequence[Any]) -> Sequence[Any]:
        end = backward_layer(inner, work, after=carried, beside=("bucket",), ratio=ratio)
        filled = inner.run(Stream.COMPUTE, work.bucket_copy_s, after=[end], name="bucket copy")
        communicate(inner, work, "bucket", after=[filled])
        return [filled]

    (end,) = steps.repeat(slices, backward, [end])
    reduced = communicate(steps, work, "last bucket", after=[end])
    end = steps.run(Stream.COMPUTE, work.gradients_copy_s, after=[end, reduced], name="bucket copy")
    return communicate(steps, work, "all gradients", after=[end])
