"""How far from the mean may a t-distributed figure lie? Student's t, and the fits that use it.

The command line starts in a blink on a laptop, so scipy (some 100 MB) is a test oracle only.
Sums are exact (math.fsum): the order of the launches changes no digit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95
POWER = 0.8
_TINY = 1e-300
_CONVERGED = 1e-16
_MOST_ITERATIONS = 10_000
_LARGEST_LOG = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A figure, how far chance moves it, and how well that is known."""

    value: float
    standard_error: float | None
    """None where nothing is known of the spread: a single value."""
    dof: float

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | tuple[None, None]:
        """Between which bounds does the truth lie in 95 % (or so many) of all cases?"""
        if self.standard_error is None:
            return None, None
        half_width = student_quantile((1 + confidence) / 2, self.dof) * self.standard_error
        return self.value - half_width, self.value + half_width

    def two_sided_p(self) -> float | None:
        """How probable is a figure at least this far from 0 by chance? The error is not 0."""
        if self.standard_error is None:
            return None
        return student_two_sided_p(self.value / self.standard_error, self.dof)


def fitted_mean(values: Sequence[float]) -> Fitted:
    """What is the mean of independent values? Source: Student, Biometrika 6 (1908): s / √n."""
    num_values = len(values)
    centre = mean(values)
    if num_values == 1:
        return Fitted(value=centre, standard_error=None, dof=0)
    squares = math.fsum((value - centre) ** 2 for value in values)
    error = math.sqrt(squares / (num_values - 1) / num_values)
    return Fitted(value=centre, standard_error=error, dof=num_values - 1)


def fitted_intercept(values: Sequence[float], distances: Sequence[float]) -> Fitted:
    """What would the values be at distance 0, by a straight line of least squares?

    Three values or more, and distances that are not all alike.
    Source: Draper & Smith, Applied Regression Analysis, 3rd ed., section 1.4.
    """
    num_values = len(values)
    centre, level = mean(distances), mean(values)
    spread = math.fsum((x - centre) ** 2 for x in distances)
    points = list(zip(distances, values, strict=True))
    slope = math.fsum((x - centre) * (y - level) for x, y in points) / spread
    squares = math.fsum((y - level - slope * (x - centre)) ** 2 for x, y in points)
    variance = squares / (num_values - 2) * (1 / num_values + centre**2 / spread)
    return Fitted(
        value=level - slope * centre, standard_error=math.sqrt(variance), dof=num_values - 2
    )


def fitted_difference(a: Sequence[float], b: Sequence[float]) -> Fitted:
    """How far is the mean of `b` above that of `a`, when their spreads may differ?

    Source: Welch, Biometrika 34 (1947); degrees of freedom by Satterthwaite (1946).
    """
    of_a, of_b = fitted_mean(a), fitted_mean(b)
    difference = of_b.value - of_a.value
    if of_a.standard_error is None or of_b.standard_error is None:
        return Fitted(value=difference, standard_error=None, dof=0)
    error = math.hypot(of_a.standard_error, of_b.standard_error)
    if error == 0:
        return Fitted(value=difference, standard_error=0.0, dof=of_a.dof + of_b.dof)
    a_share, b_share = (of_a.standard_error / error) ** 2, (of_b.standard_error / error) ** 2
    dof = 1 / (a_share**2 / of_a.dof + b_share**2 / of_b.dof)
    return Fitted(value=difference, standard_error=error, dof=dof)


def num_needed(
    fitted: Fitted, num_values: int, *, difference: float, within: tuple[int, int]
) -> int | None:
    """How many values tell `difference` from none in 4 of 5 tries, at the spread of `num_values`?

    The fewest n `within` these bounds with t(0.975) + t(0.8) ≤ |difference| / error(n), where the
    error falls with √n; None when more are needed or the spread is unknown. Source: Chow, Shao &
    Wang, Sample Size Calculations in Clinical Research, 2nd ed., section 3.1, with t for normal.
    """
    if fitted.standard_error is None:
        return None
    spread = fitted.standard_error * math.sqrt(num_values)

    def is_enough(wanted: int) -> bool:
        dof = math.floor(fitted.dof + (wanted - num_values) * max(1.0, fitted.dof / num_values))
        factors = student_quantile((1 + CONFIDENCE) / 2, dof) + student_quantile(POWER, dof)
        return factors * spread <= abs(difference) * math.sqrt(wanted)

    low, high = within
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low if is_enough(low) else None


def mean(values: Sequence[float]) -> float:
    """What is the mean?"""
    return values[0] if len(values) == 1 else math.fsum(values) / len(values)


def student_cdf(t: float, dof: float) -> float:
    """How probable is a value of Student's t of at most `t`?

    Source: NIST DLMF 8.17.2 with Abramowitz & Stegun 26.7.1: for t ≤ 0 the probability is
    I_x(ν/2, 1/2) / 2 with x = ν / (ν + t²); above 0 by symmetry.
    """
    _check_dof(dof)
    tail = _upper_tail(abs(t), dof)
    return tail if t <= 0 else 1.0 - tail


def student_two_sided_p(t: float, dof: float) -> float:
    """How probable is a value of Student's t at least as far from 0 as `t`?"""
    _check_dof(dof)
    return 2.0 * _upper_tail(abs(t), dof)


@lru_cache(maxsize=4096)
def student_quantile(probability: float, dof: float) -> float:
    """Below which value does Student's t lie with this probability (0 < probability < 1)?

    Newton's method on the logarithm of t, kept inside a bracket. The half of the distribution
    that is compared is the smaller of tail and centre, so neither loses digits.
    """
    _check_dof(dof)
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a probability lies between 0 and 1, not {probability!r}")
    centre = abs(probability - 0.5)
    if centre == 0.0:
        return 0.0
    tail = min(probability, 1.0 - probability)
    magnitude = _solve(tail, centre, dof)
    return magnitude if probability > 0.5 else -magnitude


def _solve(tail: float, centre: float, dof: float) -> float:
    """Which t > 0 leaves `tail` above it, and so `centre` between 0 and it?"""
    low, high = -_LARGEST_LOG / 2, _LARGEST_LOG / 2
    log_t = 0.0
    for _ in range(200):
        t = math.exp(log_t)
        # Both errors grow with t; the one relative to the smaller part is exact to its last digits.
        density = _density(t, dof) * t
        if centre < tail:
            reached = _centre(t, dof)
            error, slope = math.log(reached / centre), density / reached
        else:
            reached = _upper_tail(t, dof)
            if reached <= 0.0:
                high, log_t = log_t, (low + log_t) / 2
                continue
            error, slope = math.log(tail / reached), density / reached
        low, high = (log_t, high) if error < 0 else (low, log_t)
        step = error / slope if slope > 0 else math.inf
        if abs(step) < 1e-13:
            break
        nearer = log_t - step
        log_t = nearer if low < nearer < high else (low + high) / 2
    return math.exp(log_t)


def _check_dof(dof: float) -> None:
    if not (dof > 0 and math.isfinite(dof)):
        raise ValueError(f"degrees of freedom are positive and finite, not {dof!r}")


def _upper_tail(t: float, dof: float) -> float:
    """How probable is a value above `t` ≥ 0?"""
    if math.isinf(t):
        return 0.0
    ratio = t / math.sqrt(dof)
    x = 1.0 / (1.0 + ratio * ratio)
    return 0.5 * _incomplete_beta(dof / 2, 0.5, x, ratio * ratio * x)


def _centre(t: float, dof: float) -> float:
    """How probable is a value between 0 and `t`?"""
    ratio = t / math.sqrt(dof)
    x = 1.0 / (1.0 + ratio * ratio)
    return 0.5 * _incomplete_beta(0.5, dof / 2, ratio * ratio * x, x)


def _density(t: float, dof: float) -> float:
    """What is the density of Student's t at `t`? Source: Abramowitz & Stegun 26.7."""
    log_scale = -_log_beta(dof / 2, 0.5) - 0.5 * math.log(dof)
    return math.exp(log_scale - (dof + 1) / 2 * math.log1p(t * t / dof))


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _incomplete_beta(a: float, b: float, x: float, one_minus_x: float) -> float:
    """What is the regularised incomplete beta function I_x(a, b)?

    Both x and 1 − x are given, since either may be too small to be had from the other.
    Source: Numerical Recipes, 3rd ed., section 6.4; symmetry I_x(a, b) = 1 − I_{1−x}(b, a).
    """
    if x <= 0.0:
        return 0.0
    if one_minus_x <= 0.0:
        return 1.0
    log_front = a * math.log(x) + b * math.log(one_minus_x) - _log_beta(a, b)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _continued_fraction(a, b, x) / a
    return 1.0 - math.exp(log_front) * _continued_fraction(b, a, one_minus_x) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """What does the continued fraction of I_x(a, b) converge to?

    Source: NIST DLMF 8.17.22, evaluated by the modified Lentz method (Numerical Recipes 5.2).
    """
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MOST_ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + numerator * d)
            c = _away_from_zero(1.0 + numerator / c)
            fraction *= c * d
        if abs(c * d - 1.0) <= _CONVERGED:
            return fraction
    raise ArithmeticError(f"the incomplete beta function did not converge: {a=}, {b=}, {x=}")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
