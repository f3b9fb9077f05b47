"""How much longer did kernels take for running beside communication?"""

from collections.abc import Sequence

import numpy as np

from broadgauge.traces.attribution.activity import TracedActivity
from broadgauge.traces.trace import RankTrace, Times

BESIDE_RATIO = 0.5
"""A kernel is beside communication from this share of its time on, and alone at none of it."""


def compute_slowdowns(
    traces: Sequence[RankTrace], activities: Sequence[TracedActivity]
) -> tuple[int | None, ...]:
    """Of each rank, by how much its kernels beside communication exceeded the same ones alone.

    The same: name, grid and block. Alone: the median of all ranks' instances with no communication
    running, since a rank that waits spins beside nearly all of its kernels while the late one's run
    alone. None where no kernel ran in both ways.
    """
    measured = [_beside(*pair) for pair in zip(traces, activities, strict=True)]
    alone = _medians([(shape[share == 0], time[share == 0]) for shape, time, share in measured])
    return tuple(
        _excess(shape[share >= BESIDE_RATIO], time[share >= BESIDE_RATIO], alone)
        for shape, time, share in measured
    )


def _beside(trace: RankTrace, activity: TracedActivity) -> tuple[Times, Times, np.ndarray]:
    """Of each kernel that computes in the steps: its shape, its time, and the share beside."""
    spans, moments = trace.gpu.spans, activity.moments
    time = spans.end_ns - spans.start_ns
    inside = (spans.start_ns >= moments.edges_ns[0]) & (spans.end_ns <= moments.edges_ns[-1])
    chosen = activity.computing & inside & (time > 0)
    beside = moments.within(activity.communication, spans.start_ns[chosen], spans.end_ns[chosen])
    return trace.gpu.shape[chosen], time[chosen], beside / time[chosen]


def _medians(measured: Sequence[tuple[Times, Times]]) -> dict[int, float]:
    shapes = np.concatenate([shape for shape, _ in measured])
    times = np.concatenate([time for _, time in measured])
    order = np.lexsort((times, shapes))
    shapes, times = shapes[order], times[order]
    found, first, counts = np.unique(shapes, return_index=True, return_counts=True)
    low, high = first + (counts - 1) // 2, first + counts // 2
    return dict(zip(found.tolist(), ((times[low] + times[high]) / 2).tolist(), strict=True))


def _excess(shapes: Times, times: Times, alone: dict[int, float]) -> int | None:
    pairs = [
        (time, alone[shape])
        for shape, time in zip(shapes.tolist(), times.tolist(), strict=True)
        if shape in alone
    ]
    return round(sum(time - usual for time, usual in pairs)) if pairs else None
