"""What is drawn? Series and counters of a run, thinned until a page can hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.report.charts.parts import bar_label
from broadgauge.results.folder.series import read_series
from broadgauge.results.model import LOSS_SERIES, STEP_SERIES, CaseSummary, RunSummary
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.records.record import NodeUse, Record

if TYPE_CHECKING:  # the terminal's tables do without numpy
    import numpy as np
    from numpy.typing import NDArray

MOST_DOTS = 160
"""Single steps drawn a case; the box rests on all of them."""
MOST_POINTS = 200
"""Points of a loss curve."""
SMOOTHED_RATIO = 0.1
"""The share of a launch's steps whose mean is one point of its loss curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """How the steps of one case are spread, in seconds, over all launches."""

    label: str
    network: str
    samples: int
    p05: float
    p25: float
    median: float
    p75: float
    p95: float
    some: tuple[float, ...]
    """Every k-th step, the shortest and the longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Loss against time in steps, of the first launch that has both series.

    Each point is the mean of the SMOOTHED_RATIO of all steps around it: the loss of one batch says
    more of the batch than of the training.
    """

    label: str
    network: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShare:
    """What the cores of all nodes did in the good trials of a case. Shares of their time, 0..1."""

    label: str
    user: float
    system: float
    softirq: float


def step_boxes(run: RunSummary, cases: Sequence[CaseSummary]) -> tuple[Box, ...]:
    """How are the steps of each case spread?"""
    boxes = (_box(run, summary) for summary in cases)
    return tuple(box for box in boxes if box is not None)


def _box(run: RunSummary, summary: CaseSummary) -> Box | None:
    import numpy as np

    read = [_series(run.folder, record, STEP_SERIES) for record in summary.good]
    series = [values for values in read if values is not None]
    if not series:
        return None
    return _box_of(run, summary, np.concatenate(series))


def wait_boxes(run: RunSummary, cases: Sequence[CaseSummary]) -> tuple[Box, ...]:
    """How is spread what steps wait for their batches, the first of an epoch left out? Of each
    epoch's slowest rank."""
    import numpy as np

    found = []
    for summary in cases:
        epochs = [row.waits_s[1:] for record in summary.good for row in record.file_accesses]
        waits_s = np.array([wait_s for epoch in epochs for wait_s in epoch], dtype=np.float64)
        found.append(_box_of(run, summary, waits_s))
    return tuple(box for box in found if box is not None)


def _box_of(run: RunSummary, summary: CaseSummary, steps: NDArray[np.float64]) -> Box | None:
    import numpy as np

    steps = steps[np.isfinite(steps) & (steps > 0)]
    if not steps.size:
        return None
    p05, p25, median, p75, p95 = (float(q) for q in np.percentile(steps, (5, 25, 50, 75, 95)))
    some = steps[:: -(-steps.size // MOST_DOTS)]
    return Box(
        label=bar_label(summary, run),
        network=summary.case.network_name,
        samples=int(steps.size),
        p05=p05,
        p25=p25,
        median=median,
        p75=p75,
        p95=p95,
        some=tuple(sorted({*map(float, some), float(steps.min()), float(steps.max())})),
    )


def loss_curves(run: RunSummary, cases: Sequence[CaseSummary]) -> tuple[LossCurve, ...]:
    """How does the loss of each case fall with time?"""
    curves = (_loss_curve(run, summary) for summary in cases)
    return tuple(curve for curve in curves if curve is not None)


def _loss_curve(run: RunSummary, summary: CaseSummary) -> LossCurve | None:
    import numpy as np

    for record in summary.good:
        steps = _series(run.folder, record, STEP_SERIES)
        losses = _series(run.folder, record, LOSS_SERIES)
        if steps is None or losses is None or steps.size != losses.size:
            continue
        stride = -(-steps.size // MOST_POINTS)
        times = np.nancumsum(steps).tolist()  # of a step without a time nothing is known
        pairs = zip(times, smoothed(losses.tolist()), strict=True)
        points = tuple(pair for pair in list(pairs)[::stride] if pair[1] == pair[1])
        if not points:
            return None
        return LossCurve(
            label=bar_label(summary, run), network=summary.case.network_name, points=points
        )
    return None


def smoothed(values: Sequence[float]) -> list[float]:
    """Each with the mean of its neighbours, as many on either side; fewer towards the ends.

    So a straight line stays what it is. A value that is no number takes its neighbours' means.
    """
    import numpy as np

    given = np.asarray(values, dtype=float)
    is_known = np.isfinite(given)
    sums = np.concatenate(([0.0], np.cumsum(np.where(is_known, given, 0.0))))
    counts = np.concatenate(([0], np.cumsum(is_known)))
    at = np.arange(given.size)
    reach = round(given.size * SMOOTHED_RATIO / 2)
    side = np.minimum(reach, np.minimum(at, given.size - 1 - at))
    known = counts[at + side + 1] - counts[at - side]
    total = sums[at + side + 1] - sums[at - side]
    means: list[float] = np.where(known, total / np.maximum(known, 1), np.nan).tolist()
    return means


def _series(folder: Path, record: Record, name: str) -> NDArray[np.float64] | None:
    """One stored series; None where there is none. A page is made without a file that is gone."""
    try:
        return read_series(folder, record, name)
    except RunFolderError:
        return None


def host_shares(cases: Sequence[CaseSummary]) -> tuple[HostShare, ...]:
    """What did the cores do in each case?"""
    return tuple(share for summary in cases if (share := _host_share(summary)) is not None)


def _host_share(summary: CaseSummary) -> HostShare | None:
    nodes: list[NodeUse] = [
        node
        for record in summary.good
        for node in record.nodes
        if node.cpu_busy_ratio is not None  # else its cores were not counted
    ]
    total = sum(node.elapsed_s * node.cores_count for node in nodes)
    if total <= 0:
        return None
    return HostShare(
        label=f"{summary.case.workload.name} {summary.case.network_name} {summary.case.shape}",
        user=sum(node.cpu_user_s or 0.0 for node in nodes) / total,
        system=sum(node.cpu_system_s or 0.0 for node in nodes) / total,
        softirq=sum(node.cpu_softirq_s or 0.0 for node in nodes) / total,
    )
