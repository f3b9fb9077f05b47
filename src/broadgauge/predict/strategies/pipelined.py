"""Pipeline stages: each holds some layers and hands micro-batches on, one forward one backward.

Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2, figures 3 and 4 (1F1B, interleaved).
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from broadgauge.predict.strategies.work import Work, begin, communicate, finish
from broadgauge.predict.timeline import Steps, Stream, Times


@dataclass(frozen=True, slots=True)
class Pass:
    """One chunk of layers of one stage, on one micro-batch."""

    stage: int
    chunk: int
    micro_batch: int
    is_forward: bool


def program(steps: Steps, work: Work, stages: int, chunks: int, micro_batches: int) -> None:
    """A step of so many stages, each with `chunks` groups of layers."""
    ready = begin(steps, work)
    ends: dict[Pass, Any] = {}
    last = chunks * stages - 1
    for each in schedule(stages, chunks, micro_batches):
        after = [ready]
        for before in _waits(each, stages, last):
            after = [ends[before]]
            if before.stage != each.stage:
                after = [communicate(steps, work, "boundary", after=after, stage=before.stage)]
        duration_s = _duration_s(work, each, stages, stages * chunks)
        name = "forward" if each.is_forward else "backward"
        ends[each] = steps.run(Stream.COMPUTE, duration_s, after=after, name=name, stage=each.stage)
    done = []
    for stage in range(stages):
        final = Pass(stage, 0, micro_batches - 1, is_forward=False)
        done.append(communicate(steps, work, "all gradients", after=[ends[final]], stage=stage))
    finish(steps, work, after=done)


def _waits(each: Pass, stages: int, last: int) -> list[Pass]:
    """The pass whose result this one takes: the neighbour's, or the own one forward at the turn."""
    position = each.chunk * stages + each.stage
    if each.is_forward and position == 0:
        return []
    if not each.is_forward and position == last:
        return [Pass(each.stage, each.chunk, each.micro_batch, is_forward=True)]
    chunk, stage = divmod(position - 1 if each.is_forward else position + 1, stages)
    return [Pass(stage, chunk, each.micro_batch, each.is_forward)]


def _duration_s(work: Work, each: Pass, stages: int, positions: int) -> Times:
    """A chunk's layers, one after the other, each as long as its kernels or their launch.

    The last chunk has the head and the loss.
    """
    costs = work.compute
    direction = "forward" if each.is_forward else "backward"
    if each.is_forward:
        layer_s = np.maximum(costs.layer_forward_s, costs.layer_forward_launch_s)
        head_s = np.maximum(costs.head_forward_s, costs.head_forward_launch_s)
    else:
        layer_s = np.maximum(
            costs.layer_recompute_s + costs.layer_backward_s,
            costs.layer_recompute_launch_s + costs.layer_backward_launch_s,
        )
        head_s = np.maximum(costs.head_backward_s, costs.head_backward_launch_s)
    for kind in ("tensor", "expert", "context"):
        if (cost := work.collectives.get(f"{kind} {direction}")) is not None:
            layer_s = layer_s + np.maximum(cost.intra_s, cost.inter_s)
    is_last = each.chunk * stages + each.stage == positions - 1
    total_s: Times = layer_s * work.counts["layers"] / positions
    return total_s + head_s if is_last else total_s


@functools.lru_cache(maxsize=256)
def schedule(stages: int, chunks: int, micro_batches: int) -> tuple[Pass, ...]:
    """All passes, none before what it waits for, those of a stage in its order."""
    orders = [_order(stage, stages, chunks, micro_batches) for stage in range(stages)]
    position = [0] * stages
    done: set[Pass] = set()
    result: list[Pass] = []
    last = stages * chunks - 1
    while len(result) < 2 * stages * chunks * micro_batches:
        before = len(result)
        for stage, order in enumerate(orders):
            while position[stage] < len(order):
                each = order[position[stage]]
                if any(wait not in done for wait in _waits(each, stages, last)):
                    break
                done.add(each)
                result.append(each)
                position[stage] += 1
        assert len(result) > before, "a schedule that waits for itself"
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
