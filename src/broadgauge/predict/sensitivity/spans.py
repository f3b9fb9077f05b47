"""Which curves may a ladder's be, which figures are read off them, and how sure is each?"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadgauge.predict.sensitivity.curve import Curve, Form, can_fit, fit_curve, misfit
from broadgauge.predict.sensitivity.levels import FEWEST_FOR_INTERVAL, Levels
from broadgauge.results.student import student_quantile

Floats = NDArray[np.float64]

RATE_ERROR_RATIO = 0.005
"""How far an emulated link is off its payload rate, by itself: 98.8 to 100 % of it was measured, a
standard deviation of 0.5 %. Source: docs/measurements.md, "A shaped link carries its payload rate".
"""
PENALTY = 4.0
"""Each further figure of a form must lower the sum of squares by this: about 5 % of false knees."""
AS_GOOD = 2.0
"""Forms whose penalised sums are so near the best can't be told from it."""
_MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is read off one curve."""

    base_s: float
    slow_bytes: float
    fast_bytes: float
    enough_s_per_gbyte: float
    knee_s_per_gbyte: float

    def all(self) -> Floats:
        """In the order of the fields; rates as logarithms, since they have no lower end but 0."""
        logs = [_log(self.enough_s_per_gbyte), _log(self.knee_s_per_gbyte)]
        return np.array([self.base_s, self.slow_bytes, self.fast_bytes, *logs])


BASE, SLOW, FAST, ENOUGH, KNEE = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The rungs as numbers, from the fastest: float64[n] each."""

    x: Floats
    """Seconds a gigabyte of payload takes."""
    step_s: Floats
    error_ratio: Floats
    levels: Levels
    gain_ratio: float

    def fits(self) -> tuple[Curve, ...]:
        """The best form, and those as good."""
        rated: list[tuple[float, int, Curve]] = []
        for form in Form:
            if can_fit(form, len(self.x)):
                curve = fit_curve(form, self.x, self.step_s, self.error_ratio)
                left = misfit(curve, self.x, self.step_s, self.error_ratio)
                rated.append((left + PENALTY * form.num_parameters, form.num_parameters, curve))
        rated.sort(key=lambda each: each[:2])
        return tuple(curve for cost, _, curve in rated if cost <= rated[0][0] + AS_GOOD)

    def figures(self, curve: Curve) -> Figures:
        enough = curve.reaches((1 + self.gain_ratio) * curve.base_s) if curve.base_s > 0 else 0.0
        return Figures(
            base_s=curve.base_s,
            slow_bytes=curve.slow_bytes,
            fast_bytes=curve.fast_bytes,
            enough_s_per_gbyte=enough,
            knee_s_per_gbyte=curve.knee_s_per_gbyte,
        )

    def spans(self, curve: Curve) -> Floats | None:
        """Half the 95 % interval of each figure; None with fewer than 3 launches.

        By the slope of each figure over each rung's level, from a refit with the level moved by an
        error to either side. Half intervals of chance between launches and of the misfit add up in
        squares, each with its own quantile: with pooled degrees of freedom (Satterthwaite) an
        interval is too short where three launches happen to agree.
        """
        if self.levels.num_blocks < FEWEST_FOR_INTERVAL:
            return None
        slopes = np.stack([self._slopes(curve.form, rung) for rung in range(len(self.x))], axis=1)
        off_variance, off_dof = self._off(curve)
        halves = []
        for each in slopes:
            moved = self.levels.moved(each) if np.isfinite(each).all() else None
            if moved is None:
                halves.append(math.inf)
                continue
            off = off_variance * float(each @ each)
            chance = student_quantile(0.975, moved[1]) ** 2 * moved[0]
            halves.append(math.sqrt(chance + student_quantile(0.975, off_dof) ** 2 * off))
        return np.array(halves)

    def _slopes(self, form: Form, rung: int) -> Floats:
        step = float(self.error_ratio[rung])
        moved = np.eye(len(self.x))[rung] * step
        up, down = (
            self.figures(fit_curve(form, self.x, self.step_s * np.exp(by), self.error_ratio)).all()
            for by in (moved, -moved)
        )
        with np.errstate(invalid="ignore"):  # a rate that is without limit on one side
            slopes: Floats = np.where(up == down, 0.0, (up - down) / (2 * step))
        return slopes

    def _off(self, curve: Curve) -> tuple[float, float]:
        """The variance of rungs around the curve beyond chance, and how well it is known."""
        dof = len(self.x) - curve.form.num_parameters
        fitted = np.array([curve.step_s(each) for each in self.x.tolist()])
        known = RATE_ERROR_RATIO**2
        if dof < 1:
            return known, _MANY
        squares = float((np.log(self.step_s / fitted) ** 2).sum()) / dof
        beyond = squares - float(self.levels.variance.mean())
        return (beyond, dof) if beyond > known else (known, _MANY)


def _log(value: float) -> float:
    return math.log(value) if 0 < value < math.inf else math.copysign(math.inf, value - 1)
