"""How do our figures compare with what somebody published of similar cases?

Scales differ (their GPUs, our emulated nodes), so the ratio of ours to theirs says little alone.
Where several figures of one metric and workload were published, each stands relative to the first
of them, on both sides: that is what a smaller experiment can reproduce.
"""

from dataclasses import dataclass, replace

from broadgauge.results.comparing.blocks import blocks_of
from broadgauge.results.comparing.compare_cases import compare_in_blocks, metric_of
from broadgauge.results.comparing.partners import one_case, partner_of
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.hypothesis import PublishedFigure


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One published figure and ours."""

    figure: PublishedFigure
    summary: CaseSummary | None
    """The case that stands for it."""
    ours: Estimate | None
    """Of the metric, or of its ratio to `over`'s case where a ratio was published."""
    reason: str
    """Why ours is missing; empty where it is there."""
    ours_over_theirs: Estimate | None
    first: str | None = None
    """Label of the first figure of the same metric and workload; None: this is it, or there is no
    other."""
    theirs_over_first_ratio: float | None = None
    ours_over_first: Estimate | None = None
    """By interleaved pairs; None where one of the two has no figure or they were not paired."""


def published_rows(run: RunSummary) -> tuple[PublishedRow, ...]:
    """Each published figure with ours, in the experiment's order."""
    found = [_row(figure, run) for figure in run.plan.published]
    first: dict[object, PublishedRow] = {}
    for row in found:
        if row.figure.over is None:
            first.setdefault(_series(row.figure), row)
    return tuple(_relative(row, first.get(_series(row.figure))) for row in found)


def _series(figure: PublishedFigure) -> object:
    """What it has in common with the figures that it is compared with."""
    return figure.metric, figure.cases.workload


def _row(figure: PublishedFigure, run: RunSummary) -> PublishedRow:
    meant = one_case(figure.cases, run.candidates)
    found = meant.reason if meant.summary is None else _ours(figure, meant.summary, run)
    ours = None if isinstance(found, str) else found
    return PublishedRow(
        figure=figure,
        summary=meant.summary,
        ours=ours,
        reason=found if isinstance(found, str) else "",
        ours_over_theirs=None if ours is None or figure.value <= 0 else _over(ours, figure.value),
    )


def _ours(figure: PublishedFigure, summary: CaseSummary | None, run: RunSummary) -> Estimate | str:
    """Our figure, or why there is none."""
    if summary is None:
        return "no case stands for it"
    metric = figure.metric
    if metric not in summary.estimates:
        label = summary.case.label
        if not summary.num_ok:
            return f"{label}: no trial succeeded"
        return f"{label}: {summary.missing.get(metric, 'not measured')}"
    if figure.over is None:
        return summary.estimates[metric]
    partner = partner_of(summary, figure.over, run.candidates)
    if partner.summary is None:
        return partner.reason
    ratio = _ratio(metric, summary, partner.summary)
    return ratio or _why_no_ratio(metric, summary, partner.summary)


def _why_no_ratio(metric: str, summary: CaseSummary, partner: CaseSummary) -> str:
    torn = blocks_of(partner, summary, metric_of(metric)).note
    return f"no ratio to {partner.case.label}: {torn or 'not measured in common blocks'}"


def _ratio(metric: str, summary: CaseSummary, partner: CaseSummary) -> Estimate | None:
    """The case over its partner, by interleaved pairs only."""
    comparison, is_paired = compare_in_blocks(partner, summary, metric_of(metric))
    return comparison.ratio if comparison is not None and is_paired else None


def _relative(row: PublishedRow, first: PublishedRow | None) -> PublishedRow:
    """The row with both sides relative to the first of its metric and workload."""
    if row.figure.over is not None or first is None or first is row or first.figure.value == 0:
        return row
    ours = None
    if row.summary is not None and first.summary is not None and row.summary is not first.summary:
        ours = _ratio(row.figure.metric, row.summary, first.summary)
    return replace(
        row,
        first=first.figure.label,
        theirs_over_first_ratio=row.figure.value / first.figure.value,
        ours_over_first=ours,
    )


def _over(estimate: Estimate, divisor: float) -> Estimate:
    return Estimate(
        value=estimate.value / divisor,
        low=None if estimate.low is None else estimate.low / divisor,
        high=None if estimate.high is None else estimate.high / divisor,
        launches=estimate.launches,
        trials=estimate.trials,
        method=f"{estimate.method}, over the published figure",
    )
