"""Which network does a training need? Rules on predictions, each with its arithmetic.

Every rule is a ratio of two predicted steps against one limit, what pays; nothing here knows a
cluster or a model by name.
"""

import itertools
from collections.abc import Iterator, Sequence

from broadgauge.advise.recommendations.cluster_choice import of_batches, of_places, of_sizes
from broadgauge.advise.recommendations.ratio_interval import ratio_interval
from broadgauge.advise.recommendations.recommendation import (
    PAYS_RATIO,
    SUFFICIENT_RATIO,
    Recommendation,
    RecommendationRule,
    Told,
    exposed_words,
    grouped,
    network_name,
    network_step_words,
    not_fitting,
    step_words,
    told_of,
    waiting_ratio,
    where,
)
from broadgauge.predict.answering.break_even import BreakEven, by_batch, by_params
from broadgauge.predict.answering.knee import StepTimes
from broadgauge.predict.answering.settings import on_any_network
from broadgauge.predict.case import Fabric, TrainingCase, Transport
from broadgauge.predict.prediction import Interval, Prediction
from broadgauge.specs.units import show_count, show_ratio

LADDER: tuple[Transport, ...] = (
    *("none", "unknown", "overlay", "tcp", "virtio", "sriov-tcp"),
    *("efa", "roce", "infiniband"),
)
"""From what is always there to what must be bought and set up."""


def recommend(
    predictions: Sequence[Prediction],
    step_times: StepTimes | None = None,
    *,
    pays_ratio: float = PAYS_RATIO,
) -> tuple[Recommendation, ...]:
    """All that follows, what pays being what brings more than `pays_ratio`.

    With `step_times` also from where on a better network would pay.
    """
    told = told_of(predictions)
    return (
        *(_sufficient(ladder, pays_ratio, told) for ladder in _ladders(predictions)),
        *of_sizes(predictions, told),
        *of_places(predictions, pays_ratio, told),
        *of_batches(predictions, pays_ratio),
        *(
            _step_up(worse, better, pays_ratio, step_times, told)
            for ladder in _ladders(predictions)
            for worse, better in itertools.pairwise(ladder)
        ),
    )


def rung(fabric: Fabric) -> tuple[int, float]:
    """How high a network is on the ladder of effort; then by its rate."""
    rate = fabric.node_gbps or 8 * (fabric.measured_node_gbyte_per_s or 0.0)
    return LADDER.index(fabric.transport), rate


def _ladders(predictions: Sequence[Prediction]) -> Iterator[list[Prediction]]:
    """The networks of the same training and size, the largest first, from the lowest rung up.

    Nodes of two names with the same network are one: they are predicted alike.
    """
    several = [each for each in predictions if each.case.nodes > 1]
    groups = grouped(several, on_any_network)
    for group in sorted(groups, key=lambda group: -group[0].case.nodes):
        networks = {each.case.fabric: each for each in group}
        if len(networks) > 1:
            yield sorted(networks.values(), key=lambda each: rung(each.case.fabric))


def _sufficient(ladder: Sequence[Prediction], pays_ratio: float, told: Told) -> Recommendation:
    """The lowest rung that waits for a quarter of a step at most, or is as fast as the best."""
    best = min(ladder, key=lambda each: each.step_time_s.value)
    limit_s = best.step_time_s.value * (1 + pays_ratio)
    chosen = next(
        each
        for each in ladder
        if each.step_time_s.value <= limit_s or waiting_ratio(each) <= SUFFICIENT_RATIO
    )
    gain = max(0.0, chosen.step_time_s.value / best.step_time_s.value - 1)
    waits = f"{show_ratio(waiting_ratio(chosen), 2)} of a step waits for it"
    is_enough = waiting_ratio(chosen) <= SUFFICIENT_RATIO
    place = "is the best of these" if chosen is best else "is as good as any of these"
    verdict = "suffices" if is_enough else f"{place}, and too slow,"
    words = f"{network_name(chosen)} {verdict} for {where(chosen.case, told)}: {waits}"
    if best is not chosen:
        words += f", {network_name(best)} would bring {show_ratio(gain, 2)}"
    below = ladder[: list(ladder).index(chosen)]
    if below:
        times = below[-1].step_time_s.value / chosen.step_time_s.value
        words += f"; {network_name(below[-1])} takes {times:.3g} times as long"
    return Recommendation(
        rule=RecommendationRule.SUFFICES,
        is_worth_it=is_enough,
        about=network_name(chosen),
        words=words,
        arithmetic=tuple(network_step_words(each) for each in ladder),
        gain_ratio=gain,
        cautions=(
            *_unsure(best, ratio_interval(chosen, best), pays_ratio),
            *not_fitting(chosen, best),
        )
        if best is not chosen
        else tuple(not_fitting(best)),
    )


def _step_up(
    worse: Prediction,
    better: Prediction,
    pays_ratio: float,
    step_times: StepTimes | None,
    told: Told,
) -> Recommendation:
    """Does the next rung pay?"""
    ratio = worse.step_time_s.value / better.step_time_s.value
    pays = ratio > 1 + pays_ratio
    fabrics = worse.case.fabric, better.case.fabric
    is_nics = fabrics[0].transport == fabrics[1].transport
    rule = (
        RecommendationRule.NICS
        if is_nics
        else RecommendationRule.PAYS
        if pays
        else RecommendationRule.LITTLE
    )
    place = where(worse.case, told)
    if pays:
        words = (
            f"{network_name(better)} pays over {network_name(worse)} for {place}: {ratio:.3g} "
            "times as fast"
        )
    elif ratio < 1 - pays_ratio:
        words = (
            f"{network_name(better)} is slower than {network_name(worse)} for {place}: "
            f"a step takes {1 / ratio:.3g} times as long"
        )
    else:
        words = (
            f"{network_name(better)} brings little over {network_name(worse)} for {place}: "
            f"{show_ratio(abs(ratio - 1), 2)}"
        )
    sure = ratio_interval(worse, better)
    arithmetic = [
        f"{step_words(worse)} / {step_words(better)} = {ratio:.3g}, "
        f"{sure.low:.3g} to {sure.high:.3g} by what is not known of the networks",
        exposed_words(worse),
    ]
    if step_times is not None:
        arithmetic += _break_even_words(worse.case, better.case.fabric, pays_ratio, step_times)
    return Recommendation(
        rule=rule,
        is_worth_it=pays,
        about=network_name(better),
        words=words,
        arithmetic=tuple(arithmetic),
        gain_ratio=ratio - 1,
        cautions=(*_unsure(better, sure, pays_ratio), *not_fitting(worse, better)),
    )


def _unsure(better: Prediction, ratio: Interval, pays_ratio: float) -> tuple[str, ...]:
    """Would the other end of the ratio's own interval decide otherwise?"""
    limit = 1 + pays_ratio
    if not ratio.low <= limit <= ratio.high:
        return ()
    span = f"{ratio.low:.3g} to {ratio.high:.3g} times as fast"
    return (f"{network_name(better)} is {span}: measure before buying",)


def _break_even_words(
    case: TrainingCase, better: Fabric, pays_ratio: float, step_times: StepTimes
) -> Iterator[str]:
    """From which step rate and which model size on it pays."""
    limit = f"more than {show_ratio(pays_ratio)}"
    batch = by_batch(case, better, pays_ratio, step_times)
    rate = "" if batch.steps_per_s is None else f", from {batch.steps_per_s:.2g} steps/s on"
    side = "below" if batch.is_more_below else "above"
    if batch.at is None:
        yield _nowhere(batch, limit, "tokens a GPU and step")
    else:
        yield f"it pays {limit} {side} {show_count(batch.at, 2)} tokens a GPU and step{rate}"
    params = by_params(case, better, pays_ratio, step_times)
    side = "below" if params.is_more_below else "from"
    if params.at is None:
        yield _nowhere(params, limit, "parameters")
    else:
        yield f"it pays {limit} {side} {show_count(params.at, 2)} parameters, at this batch"


def _nowhere(found: BreakEven, limit: str, unit: str) -> str:
    span = f"{show_count(found.lowest, 2)} to {show_count(found.highest, 2)} {unit}"
    where_it_does = "everywhere" if found.is_always else "nowhere"
    return f"it pays {limit} {where_it_does} from {span}"
