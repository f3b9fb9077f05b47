"""Pipeline stages: each holds some layers and hands micro-batches on, one forward one backward.

Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2, figures 3 and 4 (1F1B, interleaved);
NVIDIA/Megatron-LM, schedules.py: without interleaving sends are waited for.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.timeline.strategies.work import Work, begin, communicate, finish
from broadgauge.predict.timeline.timeline import Steps, Stream

NAMES = (
    *("boundary", "all gradients", "weights"),
    *("tensor forward", "tensor backward", "context forward", "context backward"),
    *("expert forward", "expert backward"),
)
"""The collectives that a pipeline may have; without time they change nothing."""


class Pass(NamedTuple):
    """One chunk of layers of one stage, on one micro-batch."""

    stage: int
    chunk: int
    micro_batch: int
    is_forward: bool


def program(steps: Steps, work: Work, stages: int, chunks: int, micro_batches: int) -> None:
    """A step of so many stages, each with `chunks` groups of layers."""
    ready = begin(steps, work)
    ends: dict[Pass, Any] = {}
    """Of each pass, with its way to the stage that waits for it."""
    sent: dict[int, Any] = {}
    """What each stage sent last: it waits for that, unless chunks give it other work meanwhile."""
    durations_s = _durations_s(work, chunks)
    way = _Way.of(work, stages)
    last = stages * chunks - 1
    for each, before in schedule(stages, chunks, micro_batches):
        position = each.chunk * stages + each.stage
        waits = [ready if before is None else ends[before]]
        if chunks == 1 and each.stage in sent:
            waits.append(sent[each.stage])
        end = steps.run(
            Stream.COMPUTE,
            durations_s[each.is_forward, position == last],
            after=waits,
            name="forward" if each.is_forward else "backward",
            stage=each.stage,
        )
        is_final = position == (last if each.is_forward else 0)
        if not is_final:
            end = sent[each.stage] = way.run(steps, each.stage, end)
        ends[each] = end
    done = []
    for stage in range(stages):
        end = ends[Pass(stage, 0, micro_batches - 1, is_forward=False)]
        done.append(communicate(steps, work, "all gradients", after=[end], stage=stage))
    finish(steps, work, after=done)


@dataclass(frozen=True, slots=True)
class _Way:
    """From one stage to the next, over whichever link joins them, in the order of its passes."""

    stream: Stream
    duration_s: Times
    sent_bytes: Times
    counted_stage: int
    """Whose node's bytes are counted: one between two others sends both ways."""

    @classmethod
    def of(cls, work: Work, stages: int) -> "_Way":
        cost = work.collectives["boundary"]
        stream = Stream.INTER if cost.inter_s.any() else Stream.INTRA
        return cls(stream, cost.intra_s + cost.inter_s, cost.inter_bytes, min(1, stages - 2))

    def run(self, steps: Steps, stage: int, end: Any) -> Any:
        return steps.run(
            self.stream,
            self.duration_s,
            after=[end],
            name="boundary",
            stage=stage,
            sent_bytes=self.sent_bytes if stage == self.counted_stage else None,
        )


def _durations_s(work: Work, chunks: int) -> dict[tuple[bool, bool], Times]:
    """A chunk's layers, one after the other, each as long as its kernels or their launch.

    Stages wait for each other, so all are as long as the one with most layers.

    By (forward, last): the last chunk has the head and the loss. Context ranks hand keys and values
    on beside the compute, as in `forward_layer`.
    """
    costs = work.compute
    layers = work.counts["stage_layers"] / chunks
    forward_s = np.maximum(costs.layer_forward_s, costs.layer_forward_launch_s)
    backward_s = np.maximum(
        costs.layer_recompute_s + costs.layer_backward_s,
        costs.layer_recompute_launch_s + costs.layer_backward_launch_s,
    )

    def exchange_s(name: str) -> Times:
        cost = work.collectives[name]
        return np.maximum(cost.intra_s, cost.inter_s)

    for kind in ("tensor", "expert"):
        forward_s = forward_s + exchange_s(f"{kind} forward")
        backward_s = backward_s + exchange_s(f"{kind} backward")
    forward_s = np.maximum(forward_s, exchange_s("context forward"))
    backward_s = np.maximum(backward_s, exchange_s("context backward"))
    head_s = np.maximum(costs.head_forward_s, costs.head_forward_launch_s)
    head_backward_s = np.maximum(costs.head_backward_s, costs.head_backward_launch_s)
    return {
        (True, False): layers * forward_s,
        (True, True): layers * forward_s + head_s,
        (False, False): layers * backward_s,
        (False, True): layers * backward_s + head_backward_s,
    }


def _before(each: Pass, stages: int, last: int) -> Pass | None:
    """The pass whose result this one takes: the neighbour's, or its own one forward at the turn."""
    stage, chunk, micro_batch, is_forward = each
    position = chunk * stages + stage
    if is_forward and position == 0:
        return None
    if not is_forward and position == last:
        return Pass(stage, chunk, micro_batch, is_forward=True)
    chunk, stage = divmod(position - 1 if is_forward else position + 1, stages)
    return Pass(stage, chunk, micro_batch, is_forward)


@functools.lru_cache(maxsize=256)
def schedule(stages: int, chunks: int, micro_batches: int) -> tuple[tuple[Pass, Pass | None], ...]:
    """All passes with what they take, none before what it waits for, each stage's in its order."""
    orders = [_order(stage, stages, chunks, micro_batches) for stage in range(stages)]
    position = [0] * stages
    done: set[Pass | None] = {None}
    result: list[tuple[Pass, Pass | None]] = []
    last = stages * chunks - 1
    while len(result) < 2 * stages * chunks * micro_batches:
        num_before = len(result)
        for stage, order in enumerate(orders):
            while position[stage] < len(order):
                each = order[position[stage]]
                before = _before(each, stages, last)
                if before not in done:
                    break
                done.add(each)
                result.append((each, before))
                position[stage] += 1
        assert len(result) > num_before, "a schedule that waits for itself"
    return tuple(result)


def _order(stage: int, stages: int, chunks: int, micro_batches: int) -> list[Pass]:
    """One stage's passes: some forward, then one forward one backward, then the rest backward.

    Interleaved, a stage takes `stages` micro-batches through a chunk before the next chunk.
    Source: NVIDIA/Megatron-LM, schedules.py, warm-up of 2(p − stage − 1) + (v − 1)p passes.
    """
    total = chunks * micro_batches
    warm_up = stages - stage - 1
    if chunks > 1:
        warm_up = 2 * warm_up + (chunks - 1) * stages
    warm_up = min(warm_up, total)
    turns = _turns(stages, chunks, micro_batches)
    forwards = [Pass(stage, chunk, each, is_forward=True) for chunk, each in turns]
    backwards = [Pass(stage, chunks - 1 - chunk, each, is_forward=False) for chunk, each in turns]
    order = forwards[:warm_up]
    for forward, backward in zip(forwards[warm_up:], backwards, strict=False):
        order += [forward, backward]
    return order + backwards[total - warm_up :]


def _turns(stages: int, chunks: int, micro_batches: int) -> list[tuple[int, int]]:
    """(chunk, micro-batch) in forward order: rounds of `stages` micro-batches, the last shorter."""
    return [
        (chunk, first + each)
        for first in range(0, micro_batches, stages)
        for chunk in range(chunks)
        for each in range(min(stages, micro_batches - first))
    ]
