"""Which figure of a case is a hypothesis about: a value, a ratio, or an efficiency?"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from broadgauge.results.comparing.blocks import blocks_of
from broadgauge.results.comparing.compare_cases import (
    by_launch,
    compare_in_blocks,
    direction_of,
    metric_of,
)
from broadgauge.results.comparing.partners import Partner
from broadgauge.results.kinds.registry import in_results
from broadgauge.results.model import CaseSummary
from broadgauge.results.network_share import SHARE, share_of_launches
from broadgauge.results.statistics import FEWEST_UNFLAGGED, interval_of_launches
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.hypothesis import Hypothesis
from broadgauge.specs.workloads.metrics import unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisFigure:
    """The quantity that the bounds are about, of one case."""

    estimate: Estimate
    refuting: tuple[float, float] | tuple[None, None]
    """The wider interval, at 1 − 0.05 / k, that a refutation takes."""
    caveats: tuple[str, ...] = ()


def figure_of(
    hypothesis: Hypothesis, summary: CaseSummary, partner: Partner, confidence: float
) -> HypothesisFigure | str:
    """The quantity with its intervals, or why there is none."""
    metric = hypothesis.metric
    if hypothesis.quantity != "value" and partner.summary is None:
        return partner.reason
    for side in (summary, partner.summary):
        if side is not None and metric not in side.estimates:
            return f"{side.case.label}: {_why_missing(side, metric)}"
    if partner.summary is None:
        share = share_of_launches(summary.good) if metric == SHARE else None
        launches = by_launch(summary.good, metric_of(metric))
        refuting = (
            interval_of_launches(launches, confidence)
            if share is None
            else share.interval(confidence)
        )
        return HypothesisFigure(estimate=summary.estimates[metric], refuting=refuting)
    ratio = _ratio(metric, summary, partner.summary, confidence)
    if isinstance(ratio, str) or hypothesis.quantity == "ratio":
        return ratio
    return _efficiency(metric, ratio, summary, partner.summary)


def _why_missing(summary: CaseSummary, metric: str) -> str:
    if not summary.num_ok:
        return "no trial succeeded"
    return f"no {metric}: {summary.missing.get(metric, 'it was not measured')}"


def _ratio(
    metric: str, summary: CaseSummary, partner: CaseSummary, confidence: float
) -> HypothesisFigure | str:
    """The case over its partner, pair by pair."""
    comparison, is_paired = compare_in_blocks(partner, summary, metric_of(metric))
    if comparison is None:
        return "no ratio: a value is zero or negative"
    if not is_paired:
        torn = blocks_of(partner, summary, metric_of(metric)).note
        return torn or "no block holds both cases: they were not interleaved"
    few = comparison.ratio.launches < FEWEST_UNFLAGGED
    return HypothesisFigure(
        estimate=comparison.ratio,
        refuting=comparison.interval(confidence),
        caveats=tuple(note for note in comparison.notes if not (few and "launches" in note)),
    )


def _efficiency(
    metric: str, ratio: HypothesisFigure, summary: CaseSummary, partner: CaseSummary
) -> HypothesisFigure | str:
    """What does a rank give here over what it gives in the smaller world? 1 is linear scaling.

    Rates in 1/s are of all ranks (tokens_per_s, samples_per_s) and are divided by the world size.
    Bandwidths and MFU are of a rank, a node or a GPU already. Times are inverted: at equal batch
    per rank, which one workload has at every shape, a step twice as long is half the efficiency.
    """
    unit, direction = unit_of(metric), direction_of(summary, metric)
    caveats = ratio.caveats
    taken_as = in_results(summary.case.workload).taken_as(metric)
    if taken_as is not None:
        caveats = (*caveats, taken_as)
    if direction == "higher" and unit == "1/s":
        factor = partner.case.world_size / summary.case.world_size
        found = _mapped(ratio, lambda times: times * factor)
    elif direction == "higher":
        found = ratio
    elif direction == "lower" and unit == "s":
        found = _mapped(ratio, lambda times: 1 / times)
    else:
        return f"{metric} is no throughput and no time: it has no efficiency"
    return replace(found, caveats=caveats)


def _mapped(figure: HypothesisFigure, change: Callable[[float], float]) -> HypothesisFigure:
    """The figure on another scale, the ends of its intervals in their order."""

    def ends(low: float | None, high: float | None) -> tuple[float, float] | tuple[None, None]:
        if low is None or high is None:
            return None, None
        first, second = change(low), change(high)
        return min(first, second), max(first, second)

    estimate = figure.estimate
    low, high = ends(estimate.low, estimate.high)
    changed = replace(estimate, value=change(estimate.value), low=low, high=high)
    return replace(figure, estimate=changed, refuting=ends(*figure.refuting))
