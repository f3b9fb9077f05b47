"""What do repeated measurements say, and how sure can one be?

The repeat unit is the launch: steps and trials of one launch are correlated, launches are not.
How the paired comparison was chosen: docs/decisions/0002-paired-comparison.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from broadgauge.results import student
from broadgauge.specs.estimate import Estimate

if TYPE_CHECKING:  # a run is shown without numpy
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

FEWEST_FOR_A_VERDICT = 3
FEWEST_UNFLAGGED = 5
FEWEST_SAMPLES_FOR_DRIFT = 60
WITHIN_ONE = "within one launch"
# Rounding of doubles in a mean log-ratio stays below this: a smaller difference is arithmetic.
_ROUNDING = 1e-13


class ComparisonVerdict(StrEnum):
    """Is B different from A?"""

    DIFFERENT = "different"
    NO_DIFFERENCE_SEEN = "no difference seen"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPair:
    """One block of the schedule: what did a launch of A and a launch of B give, and when?

    The middles are those of each launch's measured part, in seconds from any zero common to the
    pair. Positions in the schedule do as well when all pairs give positions: only the proportions
    of the distances B − A count. Middles, not starts, since a faster B would shift the starts.
    """

    a_values: Sequence[float]
    """One value a trial, positive."""
    b_values: Sequence[float]
    a_middle_s: float
    b_middle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """How many times A is B, and is that more than chance?"""

    ratio: Estimate
    """B over A. `launches` counts those of each side (the fewer, if they differ), `trials` all."""
    verdict: ComparisonVerdict
    p_value: float | None
    """Two-sided, for "the ratio is 1". None with a single launch: no spread is known."""
    notes: tuple[str, ...]
    log_ratio: student.Fitted
    """What `ratio` was made from, for an interval of another confidence."""

    def interval(self, confidence: float) -> tuple[float, float] | tuple[None, None]:
        """Between which ratios does the truth lie in this share of all cases?"""
        low, high = self.log_ratio.interval(confidence)
        if low is None or high is None:
            return None, None
        return _exp(low), _exp(high)


def mean_of_launches(values_by_launch: Sequence[Sequence[float]]) -> Estimate:
    """What is the figure, as the mean of the launches' means, and how sure is it?

    The interval is on the plain scale, not in logs: the figure may be zero or negative (a network
    cost is a difference), it is exact for normal launches, and readers can check it by hand. With
    two or three scattered launches its lower end may be negative: that is what so few can say.
    """
    fitted = student.fitted_mean(_launch_means(values_by_launch))
    low, high = fitted.interval()
    return Estimate(
        value=fitted.value,
        low=low,
        high=high,
        launches=len(values_by_launch),
        trials=sum(map(len, values_by_launch)),
        method="mean of launches, t interval" if len(values_by_launch) > 1 else WITHIN_ONE,
    )


def interval_of_launches(
    values_by_launch: Sequence[Sequence[float]], confidence: float
) -> tuple[float, float] | tuple[None, None]:
    """Between which bounds does the mean of launches lie, in this share of all cases?"""
    return student.fitted_mean(_launch_means(values_by_launch)).interval(confidence)


def compare_paired(pairs: Sequence[LaunchPair]) -> PairedComparison:
    """How many times A is B, from interleaved pairs of launches?

    The estimand is the mean log-ratio of launch means. From 5 pairs on, when the order changed
    between pairs, log-ratio = mean + drift × (time from A to B) is fitted by least squares and the
    mean is the value at distance 0: exact for a linear drift, for one degree of freedom. With fewer
    pairs that degree costs more than it gives, and with one order only drift and difference cannot
    be told apart: there it is the plain paired t. Which of the two never depends on the values.
    """
    a_means = _positive_means([pair.a_values for pair in pairs])
    b_means = _positive_means([pair.b_values for pair in pairs])
    log_ratios = [math.log(b / a) for a, b in zip(a_means, b_means, strict=True)]
    distances = [pair.b_middle_s - pair.a_middle_s for pair in pairs]
    if not all(math.isfinite(distance) for distance in distances):
        raise ValueError(f"the middles of launches are finite times, but B − A gave {distances!r}")
    has_both_orders = min(distances) < 0 < max(distances)
    trials = sum(len(pair.a_values) + len(pair.b_values) for pair in pairs)
    if has_both_orders and len(pairs) >= FEWEST_UNFLAGGED:
        method = "mean log-ratio of pairs less linear drift, t interval"
        fitted = student.fitted_intercept(log_ratios, distances)
    else:
        method = "mean log-ratio of pairs, t interval"
        fitted = student.fitted_mean(log_ratios)
    one_order = "A and B always ran in the same order: drift is not cancelled"
    return _judged(
        fitted,
        launches=len(pairs),
        trials=trials,
        method=method,
        notes=() if has_both_orders or len(pairs) == 1 else (one_order,),
    )


def compare_unpaired(
    a_by_launch: Sequence[Sequence[float]],
    b_by_launch: Sequence[Sequence[float]],
) -> PairedComparison:
    """How many times A is B, from two runs that were not interleaved?

    Welch's t on the logarithms of launch means.
    """
    a_logs = [math.log(value) for value in _positive_means(a_by_launch)]
    b_logs = [math.log(value) for value in _positive_means(b_by_launch)]
    return _judged(
        student.fitted_difference(a_logs, b_logs),
        launches=min(len(a_logs), len(b_logs)),
        trials=sum(len(values) for values in (*a_by_launch, *b_by_launch)),
        method="difference of mean logs of two runs, Welch t interval",
        notes=("not interleaved: drift between the two runs is not in the interval",),
    )


def _judged(
    fitted: student.Fitted,
    *,
    launches: int,
    trials: int,
    method: str,
    notes: tuple[str, ...],
) -> PairedComparison:
    """What may be said of a mean log-ratio?"""
    if fitted.standard_error is not None:
        fitted = replace(fitted, standard_error=max(fitted.standard_error, _ROUNDING))
    low, high = (None if end is None else _exp(end) for end in fitted.interval())
    verdict = ComparisonVerdict.NO_DIFFERENCE_SEEN
    if low is None or high is None or launches < FEWEST_FOR_A_VERDICT:
        verdict = ComparisonVerdict.CANNOT_TELL
    elif low > 1 or high < 1:
        verdict = ComparisonVerdict.DIFFERENT
    if launches < FEWEST_FOR_A_VERDICT:
        notes = (f"{launches} of the {FEWEST_FOR_A_VERDICT} launches a verdict needs", *notes)
    elif launches < FEWEST_UNFLAGGED:
        notes = (f"only {launches} launches: provisional below {FEWEST_UNFLAGGED}", *notes)
    ratio = Estimate(
        value=_exp(fitted.value),
        low=low,
        high=high,
        launches=launches,
        trials=trials,
        method=WITHIN_ONE if low is None else method,
    )
    return PairedComparison(
        ratio=ratio,
        verdict=verdict,
        p_value=fitted.two_sided_p(),
        notes=notes,
        log_ratio=fitted,
    )


def _exp(log_ratio: float) -> float:
    return math.exp(min(log_ratio, 700.0))


def _launch_means(values_by_launch: Sequence[Sequence[float]]) -> list[float]:
    if not values_by_launch or not all(map(len, values_by_launch)):
        raise ValueError("a figure needs a launch at least, and a trial at least in each")
    means = [student.mean(values) for values in values_by_launch]
    if not all(map(math.isfinite, means)):
        raise ValueError(f"values are finite numbers, but the launches' means are {means!r}")
    return means


def _positive_means(values_by_launch: Sequence[Sequence[float]]) -> list[float]:
    means = _launch_means(values_by_launch)
    if min(means) <= 0:
        raise ValueError(f"a ratio needs positive values, but a launch's mean is {min(means)!r}")
    return means


def drift_ratio(series: ArrayLike) -> float | None:
    """How many times its first third is a series' last third, by medians? None if that says little.

    That is below 60 samples, or when the first third's median is not positive.
    """
    import numpy as np

    values = np.asarray(series, dtype=np.float64)
    third = values.size // 3
    if values.size < FEWEST_SAMPLES_FOR_DRIFT or not np.median(values[:third]) > 0:
        return None
    return float(np.median(values[-third:]) / np.median(values[:third]))


def is_drifting(series: ArrayLike) -> bool:
    """Did a trial get slower or faster while it ran, by 2 % at least and beyond chance?

    Beyond 3 standard errors of a difference of medians, 1.2533 · 1.4826 MAD · √(2 / n), where n is
    a third of the samples less what their correlation ρ takes, × (1 − ρ) / (1 + ρ). Robust: spread
    and ρ are of residuals around the drift, cut at 3 deviations, so a few stragglers neither hide
    nor make one. Source: Kenney & Keeping (median); Box & Jenkins (ρ); the rates are in its test.
    """
    import numpy as np

    ratio = drift_ratio(series)
    if ratio is None or abs(ratio - 1) < 0.02:
        return False
    values = np.asarray(series, dtype=np.float64)
    third = values.size // 3
    change = float(np.median(values[-third:]) - np.median(values[:third]))
    residuals = values - np.arange(values.size) * change / (values.size - third)
    residuals -= np.median(residuals)
    deviation = 1.4826 * float(np.median(np.abs(residuals)))
    rho = _lag1(np.clip(residuals, -3 * deviation, 3 * deviation)) or 0.0
    rho = min(max(rho + (1 + 3 * rho) / values.size, 0.0), 0.99)  # Kendall's bias of a sample's ρ
    error = 1.2533 * deviation * math.sqrt(2 / third * (1 + rho) / (1 - rho))
    return abs(change) > 3 * error


def _lag1(values: NDArray[np.float64]) -> float | None:
    """How alike are neighbours? Source: Box & Jenkins, section 2.1: r₁ = c₁ / c₀."""
    deviations = values - values.mean()
    power = float(deviations @ deviations)
    if values.size < 3 or power <= 0:
        return None
    return float(deviations[1:] @ deviations[:-1]) / power
