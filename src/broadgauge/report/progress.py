"""When was how much of a training done? Points against the clock, of one launch a case.

Of our own trainer a step ends when the start-up, the model's load, the warm-up and the measured
steps before it have passed: what only the measuring needs in between is left out, as in the time to
completion. Of a command a step ends when the line of its first metric is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broadgauge.report.chart_parts import bar_label
from broadgauge.results.folder.series import series_or_none
from broadgauge.results.kinds.registry import in_results
from broadgauge.results.model import (
    PROGRESS_SERIES,
    STEP_SERIES,
    CaseSummary,
    RunSummary,
)
from broadgauge.results.saved_checkpoints import CHECKPOINT_SERIES
from broadgauge.specs.completion import CompletionPart
from broadgauge.specs.record import Record

if TYPE_CHECKING:  # tables are shown without numpy
    import numpy as np
    from numpy.typing import NDArray

MOST_POINTS = 120
"""Of a curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressCurve:
    """Steps done against seconds since the start of the ranks."""

    label: str
    network: str
    points: tuple[tuple[float, float], ...]


def progress_curves(run: RunSummary, cases: Sequence[CaseSummary]) -> tuple[ProgressCurve, ...]:
    """Of the cases that tell."""
    curves = (_curve(run, summary) for summary in cases)
    return tuple(curve for curve in curves if curve is not None)


def before_steps_s(record: Record, summary: CaseSummary) -> float | None:
    """What has passed when a training's first measured step begins. None: not known."""
    completion, step_s = record.completion, record.metrics.get("step_time_s")
    warm_up_steps = in_results(summary.case.workload).warm_up_steps
    if completion is None or step_s is None or warm_up_steps is None:
        return None
    parts = (CompletionPart.START_UP, CompletionPart.MODEL_LOAD, CompletionPart.OTHER)
    known = [completion.parts_s.get(part) or 0.0 for part in parts]
    return sum(known) + warm_up_steps * step_s


def _curve(run: RunSummary, summary: CaseSummary) -> ProgressCurve | None:
    for record in summary.good:
        points = _of_training(run, record, summary) or _of_command(run, record)
        if points:
            return ProgressCurve(
                label=bar_label(summary, run),
                network=summary.case.network_name,
                points=_thinned(points),
            )
    return None


def _of_training(
    run: RunSummary, record: Record, summary: CaseSummary
) -> list[tuple[float, float]]:
    import numpy as np

    before_s = before_steps_s(record, summary)
    steps = series_or_none(run.folder, record, STEP_SERIES)
    first = in_results(summary.case.workload).warm_up_steps
    if before_s is None or steps is None or first is None:
        return []
    times = before_s + np.nancumsum(steps) + saving_before_s(run, record, steps.size)
    done = [(time_s, float(first + n)) for n, time_s in enumerate(times.tolist(), start=1)]
    return [(before_s, float(first)), *done]


def saving_before_s(run: RunSummary, record: Record, num_steps: int) -> NDArray[np.float64]:
    """By measured step: how long had the training stood still for checkpoints before its end?"""
    import numpy as np

    stalls_s = series_or_none(run.folder, record, CHECKPOINT_SERIES)
    if stalls_s is None or stalls_s.size != num_steps:
        return np.zeros(num_steps)
    sums: NDArray[np.float64] = np.nancumsum(stalls_s) - np.nan_to_num(stalls_s)
    return sums


def _of_command(run: RunSummary, record: Record) -> list[tuple[float, float]]:
    times = series_or_none(run.folder, record, PROGRESS_SERIES)
    if times is None or times.size < 2:  # a figure of the whole run
        return []
    return [(time_s, float(n)) for n, time_s in enumerate(times.tolist(), start=1)]


def _thinned(points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    stride = -(-len(points) // MOST_POINTS)
    kept = points[::stride]
    return tuple(kept if kept[-1] == points[-1] else [*kept, points[-1]])
