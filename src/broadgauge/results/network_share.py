"""Which share of a step does the network cost? One definition, wherever a case's share is said.

The share is the network cost over the step time, both as the case's table states them: means over
launches. The mean of the launches' own shares is another figure, which noisy launches draw away
from the two that stand beside it. Source: Cochran, Sampling Techniques, 3rd ed. (1977), section
6.4: the ratio of two means R, with the error of the mean of y − R x over the mean of x.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broadgauge.results import student
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Record

SHARE = "network_share_ratio"
METHOD = "network cost over step time, means of launches, t interval"
CUT = "cut at 100 %: no network costs more than the step"
FEWEST_FOR_INTERVAL = 3
MOST_RATIO = 1e6
"""What costs more of a step than this is no step that was measured."""
AGREEING_RATIO = 0.04
"""Launches whose shares lie within 2 % of a step on either side of none agree that it is next to
none; repeated measurements spread by as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOfLaunches:
    """What the launches of a case say of the network's share."""

    costs_s: tuple[float, ...]
    """Mean of each launch, in the order they ran."""
    steps_s: tuple[float, ...]
    num_trials: int

    @property
    def ratios(self) -> tuple[float, ...]:
        """Each launch's own."""
        return tuple(c / s for c, s in zip(self.costs_s, self.steps_s, strict=True))

    @property
    def disagrees_in_sign(self) -> bool:
        """Does the network cost time in one launch and save it in another, by more than noise?"""
        low, high = min(self.ratios), max(self.ratios)
        return low < 0 < high and high - low > AGREEING_RATIO

    def fitted(self) -> student.Fitted:
        """The share with its error."""
        step_s = student.mean(self.steps_s)
        share = student.mean(self.costs_s) / step_s
        pairs = zip(self.costs_s, self.steps_s, strict=True)
        off = student.fitted_mean([cost_s - share * one_s for cost_s, one_s in pairs])
        error = None if off.standard_error is None else off.standard_error / step_s
        return student.Fitted(value=share, standard_error=error, dof=off.dof)

    def interval(self, confidence: float) -> tuple[float, float] | tuple[None, None]:
        """Between which bounds it lies; not above 1."""
        low, high = self.fitted().interval(confidence)
        if low is None or high is None:
            return None, None
        return min(low, 1.0), min(high, 1.0)

    def estimate(self) -> Estimate:
        """As every other figure; with two launches no interval is given."""
        fitted = self.fitted()
        low, high = fitted.interval()
        launches = len(self.costs_s)
        if low is None or high is None or launches < FEWEST_FOR_INTERVAL:
            low = high = None
        is_cut = high is not None and high > 1
        return Estimate(
            value=fitted.value,
            low=None if low is None else min(low, 1.0),
            high=None if high is None else min(high, 1.0),
            launches=launches,
            trials=self.num_trials,
            method=METHOD + (f", {CUT}" if is_cut else ""),
        )


def share_of_launches(good: Iterable[Record]) -> ShareOfLaunches | None:
    """Of trials that succeeded; None where none has both a step time and a network cost."""
    launches: dict[str, list[tuple[float, float]]] = {}
    for record in good:
        cost_s, step_s = (record.metrics.get(name) for name in ("network_cost_s", "step_time_s"))
        if cost_s is None or step_s is None or step_s <= 0:
            continue
        if abs(cost_s) <= MOST_RATIO * step_s:
            launches.setdefault(record.launch_id, []).append((cost_s, step_s))
    if not launches:
        return None
    return ShareOfLaunches(
        costs_s=tuple(_means(launches.values(), 0)),
        steps_s=tuple(_means(launches.values(), 1)),
        num_trials=sum(map(len, launches.values())),
    )


def _means(launches: Iterable[Sequence[tuple[float, float]]], which: int) -> list[float]:
    return [student.mean([pair[which] for pair in trials]) for trials in launches]
