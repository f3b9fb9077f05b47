"""Which curve do step times follow over 1/bandwidth?

Bytes that a step waits for take time in proportion to 1/bandwidth; those hidden behind compute take
none until the network is so slow that they stick out. So the time is a convex line of few straight
pieces that never falls: the larger of several sums "compute + bytes x 1/bandwidth", each along one
way through the step's dependencies. Four forms are asked for, the simplest first.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BYTES_PER_GBYTE = 1e9


class Form(StrEnum):
    """What may a ladder look like, from the fastest rate to the slowest?"""

    FLAT = "flat"
    """No rate makes a difference."""
    LINE = "line"
    """Every byte counts at every rate: nothing is hidden, or always as much."""
    HINGE = "hinge"
    """All is hidden down to some rate, and below it every byte counts."""
    TWO_SLOPES = "two slopes"
    """Some bytes count at every rate, and below some rate more of them."""

    @property
    def num_parameters(self) -> int:
        """How many figures are fitted?"""
        return {Form.FLAT: 1, Form.LINE: 2, Form.HINGE: 3, Form.TWO_SLOPES: 4}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderCurve:
    """A step's time over the rate of payload, as base + slope x 1/rate of one or two pieces."""

    form: Form
    base_s: float
    """Where the rate is without limit: the time that no network can remove."""
    fast_bytes: float
    """Slope at high rates: bytes that are waited for there."""
    slow_bytes: float
    """Slope at low rates, never less."""
    knee_s_per_gbyte: float
    """1/rate from which on `slow_bytes` count; 0 for one piece."""

    def step_s(self, x_s_per_gbyte: float) -> float:
        """How long is a step where a gigabyte of payload takes so many seconds?"""
        beyond = max(0.0, x_s_per_gbyte - self.knee_s_per_gbyte)
        before = x_s_per_gbyte - beyond
        slopes = self.fast_bytes * before + self.slow_bytes * beyond
        return self.base_s + slopes / BYTES_PER_GBYTE

    def reaches(self, step_s: float) -> float:
        """At which 1/rate, in s/GB, is a step so long? Infinite where it never is."""
        knee_s = self.step_s(self.knee_s_per_gbyte)
        if step_s < knee_s:
            return (step_s - self.base_s) * BYTES_PER_GBYTE / self.fast_bytes
        if self.slow_bytes <= 0:
            return math.inf
        return self.knee_s_per_gbyte + (step_s - knee_s) * BYTES_PER_GBYTE / self.slow_bytes


def fit_curve(form: Form, x: Floats, step_s: Floats, error_ratio: Floats) -> LadderCurve:
    """Which curve of this form is nearest, by relative errors? `x` in s/GB, rising; float64[n].

    Least squares of (measured - curve) / (measured x error), slopes and base not negative. For one
    knee the curve is linear in the rest; its best place is a rung, or where the lines through the
    rungs on both sides meet: all of these are tried. Source: Hudson, "Fitting segmented curves
    whose join points have to be estimated", JASA 61 (1966), section 3.
    """
    errors = step_s * error_ratio
    knees = _knees(form, x, step_s, errors)
    fits = (_fit_with_knee(form, x, step_s, errors, knee) for knee in knees)
    return min(fits, key=lambda fit: fit[0])[1]


def misfit(curve: LadderCurve, x: Floats, step_s: Floats, error_ratio: Floats) -> float:
    """The sum of squares of relative errors over what they are expected to be."""
    fitted = np.array([curve.step_s(each) for each in x.tolist()])
    return math.fsum((((step_s - fitted) / (step_s * error_ratio)) ** 2).tolist())


def can_fit(form: Form, num_rungs: int) -> bool:
    """Are there rungs enough for each piece to be seen?"""
    return num_rungs >= max(form.num_parameters, 2)


def _fit_with_knee(
    form: Form, x: Floats, step_s: Floats, errors: Floats, knee: float
) -> tuple[float, LadderCurve]:
    """The best curve with its knee there, and its misfit."""
    one, before, beyond = np.ones_like(x), np.minimum(x, knee), np.maximum(x - knee, 0.0)
    # Columns as parts of the time: base, bytes at every rate, bytes at low rates on top of them.
    columns = {
        Form.FLAT: (one,),
        Form.LINE: (one, x),
        Form.HINGE: (one, beyond),
        Form.TWO_SLOPES: (one, before + beyond, beyond),
    }[form]
    left, parts = _not_negative(np.stack(columns, axis=1), step_s, errors)
    base_s, fast, slow = parts[0], 0.0, 0.0
    if form is Form.LINE:
        fast = slow = parts[1]
    elif form is Form.HINGE:
        slow = parts[1]
    elif form is Form.TWO_SLOPES:
        fast, slow = parts[1], parts[1] + parts[2]
    curve = LadderCurve(
        form=form,
        base_s=base_s,
        fast_bytes=fast * BYTES_PER_GBYTE,
        slow_bytes=slow * BYTES_PER_GBYTE,
        knee_s_per_gbyte=knee if form in (Form.HINGE, Form.TWO_SLOPES) else 0.0,
    )
    return left, curve


def _knees(form: Form, x: Floats, step_s: Floats, errors: Floats) -> Iterator[float]:
    """Where may the knee be? Two rungs at least are beyond it, and two before a second slope."""
    if form in (Form.FLAT, Form.LINE):
        yield 0.0
        return
    num_before = 1 if form is Form.HINGE else 2
    for split in range(num_before, len(x) - 1):
        start, end = float(x[split - 1]), float(x[split])
        yield start
        before, after = slice(split), slice(split, None)
        low_level, low_slope = _line(x[after], step_s[after], errors[after])
        for level, slope in _before_knee(form, x[before], step_s[before], errors[before]):
            if low_slope > slope:
                meeting = (level - low_level) / (low_slope - slope)
                if start < meeting < end:
                    yield meeting
    yield float(x[-2])


def _before_knee(
    form: Form, x: Floats, step_s: Floats, errors: Floats
) -> Iterator[tuple[float, float]]:
    """Level at 0 and slope of the piece before the knee: free, without slope, or without level."""
    weights = 1 / errors**2
    yield float(weights @ step_s) / float(weights.sum()), 0.0
    if form is Form.TWO_SLOPES:
        yield _line(x, step_s, errors)
        yield 0.0, float(weights @ (x * step_s)) / float(weights @ x**2)


def _line(x: Floats, step_s: Floats, errors: Floats) -> tuple[float, float]:
    """Level at 0 and slope of the line through these points, by least squares."""
    weights = 1 / errors**2
    total = float(weights.sum())
    centre, level = float(weights @ x) / total, float(weights @ step_s) / total
    spread = float(weights @ (x - centre) ** 2)
    slope = float(weights @ ((x - centre) * (step_s - level))) / spread
    return level - slope * centre, slope


def _not_negative(
    columns: Floats, step_s: Floats, errors: Floats
) -> tuple[float, tuple[float, ...]]:
    """Least squares with no part below 0: `float64[n, k]`, k of 3 at most, so each choice of parts
    that are 0 is tried. Returns the sum of squares, and the parts."""
    scaled = columns / errors[:, None]
    wanted = step_s / errors
    lengths = np.sqrt((scaled**2).sum(axis=0))
    lengths[lengths == 0] = 1.0
    num = scaled.shape[1]
    best: tuple[float, tuple[float, ...]] | None = None
    for size in range(num, 0, -1):
        for kept in itertools.combinations(range(num), size):
            chosen = list(kept)
            found = np.linalg.lstsq(scaled[:, chosen] / lengths[chosen], wanted, rcond=None)[0]
            if (found < 0).any():
                continue
            left = float(((wanted - scaled[:, chosen] / lengths[chosen] @ found) ** 2).sum())
            if best is None or left < best[0]:
                parts = np.zeros(num)
                parts[chosen] = found / lengths[chosen]
                best = left, tuple(parts.tolist())
        if best is not None and size == num:
            break  # the free optimum is allowed: no other is better
    assert best is not None, "the first column alone, of positive times, is positive"
    return best
