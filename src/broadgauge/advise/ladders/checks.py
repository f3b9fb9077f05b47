"""Does what a ladder says agree with what was counted, measured and predicted beside it?

Three figures are measured twice. Bytes: on the critical path, and by the link's counters; what the
counters have more is hidden behind compute. The network's cost: step less base, and step less the
same step with communication off. Step times: measured, and predicted. They agree where their
distance is within both intervals, added in squares.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from broadgauge.advise.ladders.found_rates import NORMAL_95
from broadgauge.advise.ladders.ladder import (
    Ladder,
    NetworkCost,
    Predicted,
    is_unshaped,
    node_payload_gbps,
    node_rate_gbps,
)
from broadgauge.predict.sensitivity.ladder import Rung, Sensitivity
from broadgauge.predict.sensitivity.sensitivity import FEWEST_RUNGS, analyse
from broadgauge.results.folder.series import read_series
from broadgauge.results.kinds.registry import in_results
from broadgauge.results.model import CaseSummary
from broadgauge.results.summary import estimate_over
from broadgauge.specs.case import Case
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Record
from broadgauge.specs.units import show_rate, show_ratio, show_size, show_time

COUNTED_RATIO = 0.05
"""Counters see acknowledgements, 1 to 3 % of the bytes, and what the library says to itself."""

PREDICTED_RATIO = 0.15
"""What a calibrated prediction of a toy training on CPUs may be off; with GPUs it is less."""


def checked(ladder: Ladder, folder: Path, predicted: Mapping[str, Estimate]) -> Ladder:
    """The ladder with all that stands beside its curve, and where that disagrees."""
    assert ladder.found is not None, "only a ladder with a curve is checked"
    counted, how = _counted(ladder, folder)
    costs = tuple(_costs(ladder, ladder.found))
    good = [record for summary in ladder.rungs for record in summary.good]
    off = estimate_over(good, lambda r: r.metrics.get("step_without_communication_s"))
    rungs = tuple(_predicted(ladder, predicted))
    full = replace(
        ladder,
        counted_bytes=counted,
        counted_how=how,
        costs=costs,
        off_step_s=off,
        predicted=rungs,
        predicted_found=_predicted_found(ladder, rungs),
    )
    disagreements = (
        *_about_bytes(full),
        *_about_costs(full),
        *_about_predictions(full),
        *_about_networks(full),
    )
    return replace(full, disagreements=disagreements, notes=(*full.notes, *_about_host(full)))


def hidden_ratio(critical: Estimate, counted: Estimate) -> float:
    """Which share of the bytes is not waited for? Not below 0."""
    return max(0.0, 1 - critical.value / counted.value)


def _counted(ladder: Ladder, folder: Path) -> tuple[Estimate | None, str]:
    """Payload of a step by the link's counters, over all rungs, and what else is in it."""
    case = ladder.rungs[0].case
    share = _payload_share(case)
    beside = "acknowledgements" if share < 1 else "headers and acknowledgements"
    shaped = (summary for summary in ladder.rungs if not is_unshaped(summary.case))
    good = [record for summary in shaped for record in summary.good]
    if ladder.is_inverse:
        return None, "the counters count by step, and the metric is a rate"
    of = in_results(case.workload).counted_by
    if of is not None and not all(
        _has_as_many_samples(case, record, folder, (of, ladder.metric)) for record in good
    ):
        return None, f"the counters count by line of {of}, and {ladder.metric} has others"
    found = estimate_over(good, lambda r: _times(r.metrics.get("wire_bytes"), share))
    if found is None:
        missing = (r.missing.get("wire_bytes") for r in good)
        return None, next(filter(None, missing), "no link's counters were read")
    if found.value <= 0:
        return None, "no byte went through the counted interfaces: it is sent over others"
    return found, f"{beside} among them" + ("" if of is None else f", by line of {of}")


def _has_as_many_samples(
    case: Case, record: Record, folder: Path, metrics: tuple[str, str]
) -> bool:
    """Of both metrics, but for one: they are then printed once a step both."""
    kind = in_results(case.workload)
    try:
        several = [read_series(folder, record, metric) for metric in metrics]
    except RunFolderError:
        return False
    printed = [
        series.size + kind.samples_left_out(metric)
        for metric, series in zip(metrics, several, strict=True)
        if series is not None
    ]
    return len(printed) == len(metrics) and abs(printed[0] - printed[1]) <= 1


def _payload_share(case: Case) -> float:
    """Of the bytes on the wire. Of a network that was found 1: its MTU and headers are its own."""
    if case.link is None or case.link.payload_rate_gbps is None:
        return 1.0
    assert case.link.slower_rate_gbps is not None, "payload is a part of a rate"
    return case.link.payload_rate_gbps / case.link.slower_rate_gbps


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _costs(ladder: Ladder, found: Sensitivity) -> Iterator[NetworkCost]:
    """`network_cost_s` of each rung beside the curve's; none for rates and commands."""
    if ladder.metric != "step_time_s":
        return
    base = found.curve_base_s
    for summary, rung in zip(ladder.rungs, found.rungs, strict=True):
        measured = summary.estimates.get("network_cost_s")
        off = summary.estimates.get("step_without_communication_s")
        if measured is not None and off is not None:
            yield NetworkCost(
                rate_gbps=rung.rate_gbps,
                measured_s=measured,
                curve_s=_not_rounding(rung.step_s.value - base.value, rung.step_s.value),
                is_apart=is_apart(base, off),
            )


def _not_rounding(difference_s: float, of_s: float) -> float:
    """0 where two figures differ in their last digits only."""
    return 0.0 if abs(difference_s) < 1e-9 * of_s else difference_s


def is_apart(a: Estimate, b: Estimate, slack_ratio: float = 0.0) -> bool:
    """Are two figures further apart than their intervals allow? Not without intervals."""
    low, high = (a, b) if a.value <= b.value else (b, a)
    if low.high is None or high.low is None:
        return False
    reach = math.hypot(low.high - low.value, high.value - high.low)
    return high.value - low.value > reach + slack_ratio * high.value


def _about_bytes(ladder: Ladder) -> Iterator[str]:
    found, counted = ladder.found, ladder.counted_bytes
    critical = None if found is None else found.critical_bytes.estimate
    if critical is None or counted is None or critical.value <= counted.value:
        return
    if is_apart(critical, counted, COUNTED_RATIO):
        yield (
            f"a step waits for {show_size(round(critical.value))}, and no node's link carries "
            f"more than {show_size(round(counted.value))} in one direction: transfers wait for "
            "each other, one direction after the other, or do not fill the link"
        )


def _about_costs(ladder: Ladder) -> Iterator[str]:
    apart = [cost for cost in ladder.costs if cost.is_apart]
    base = None if ladder.found is None else ladder.found.base_s.estimate
    off = ladder.off_step_s
    if not apart or base is None or off is None:
        return
    at = f"at {len(apart)} of {len(ladder.costs)} rates"
    if base.value > off.value:
        rest = show_time(base.value - off.value, 2)
        why = f"{rest} of communication that no rate removes: latency, and the cores' work for it"
    else:
        why = "with communication off a step also loses what runs beside it"
    yield (
        f"network_cost_s disagrees {at}: a step takes {show_time(off.value)} with communication "
        f"off, and {show_time(base.value)} on a network without limit: {why}"
    )


def _about_predictions(ladder: Ladder) -> Iterator[str]:
    found = ladder.found
    if found is None:
        return
    measured = {rung.rate_gbps: rung.step_s for rung in found.rungs}
    apart = [p for p in ladder.predicted if _is_wrong(p, measured[p.rate_gbps])]
    if apart:
        worst = max(apart, key=lambda p: _off(p, measured[p.rate_gbps]))
        step = measured[worst.rate_gbps]
        yield (
            f"the predictor disagrees at {len(apart)} of {len(ladder.predicted)} rates: at "
            f"{show_rate(worst.rate_gbps)} it says {show_time(worst.step_s.value)}, measured are "
            f"{show_time(step.value)} ({show_ratio(_off(worst, step), 2)} apart)"
        )


def _is_wrong(predicted: Predicted, measured: Estimate) -> bool:
    """By its own interval; where it gives none, by more than it is allowed after calibration."""
    if predicted.step_s.low is None:
        slack_s = PREDICTED_RATIO * measured.value
        step = predicted.step_s
        ends = (step.value - slack_s, step.value + slack_s)
        return is_apart(measured, replace(step, low=ends[0], high=ends[1]))
    return is_apart(measured, predicted.step_s)


def _off(predicted: Predicted, measured: Estimate) -> float:
    return abs(predicted.step_s.value / measured.value - 1)


def _about_networks(ladder: Ladder) -> Iterator[str]:
    """Of networks that were found: which are not where their rates put them?"""
    if not ladder.rates_words or ladder.found is None:
        return
    for rung in ladder.found.rungs:
        slack = NORMAL_95 * rung.rate_error_ratio
        curve = replace(rung.step_s, value=rung.fitted_s, low=rung.fitted_s, high=rung.fitted_s)
        if is_apart(rung.step_s, curve, slack):
            side = "longer" if rung.off_ratio > 0 else "shorter"
            yield (
                f"on {rung.name} a step is {show_ratio(abs(rung.off_ratio), 2)} {side} than what "
                "it carries would make it: the networks differ in more than their rate"
            )


def _about_host(ladder: Ladder) -> Iterator[str]:
    """A rung that the host limited is still an upper bound of what no network can remove."""
    assert ladder.found is not None, "only a ladder with a curve is checked"
    base = ladder.found.curve_base_s
    if base.low is None:
        return
    for each in ladder.left_out:
        if each.step_s is not None and each.step_s < base.low:
            yield (
                f"{each.summary.case.network_name} took {show_time(each.step_s)}, less than "
                f"the time that no network can remove by the curve: it goes on falling beyond"
            )


def _predicted(ladder: Ladder, predicted: Mapping[str, Estimate]) -> Iterator[Predicted]:
    for summary in ladder.rungs:
        step = predicted.get(summary.case.key)
        rate_gbps = node_rate_gbps(summary.case)
        if step is not None and rate_gbps is not None and ladder.metric == "step_time_s":
            yield Predicted(rate_gbps=rate_gbps, step_s=step)


def _predicted_found(ladder: Ladder, rungs: tuple[Predicted, ...]) -> Sensitivity | None:
    """The three answers by the predictor: its step times through the same curve."""
    if len(rungs) < FEWEST_RUNGS or ladder.found is None:
        return None
    shaped = [summary for summary in ladder.rungs if not is_unshaped(summary.case)]
    payload = {node_rate_gbps(s.case): _payload(s) for s in shaped}
    return analyse(
        [
            Rung(
                rate_gbps=each.rate_gbps,
                payload_gbps=payload[each.rate_gbps],
                step_s_by_block={0: each.step_s.value},
            )
            for each in rungs
        ],
        gain_ratio=ladder.found.gain_ratio,
        is_exact=True,
    )


def _payload(summary: CaseSummary) -> float:
    payload_gbps = node_payload_gbps(summary.case)
    assert payload_gbps is not None, "a rung has a rate"
    return payload_gbps
