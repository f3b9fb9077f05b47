"""Which curves may a ladder's be, and which figures are read off each?"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadgauge.predict.sensitivity.curve import Form, LadderCurve, can_fit, fit_curve, misfit
from broadgauge.predict.sensitivity.levels import FEWEST_FOR_INTERVAL, Levels
from broadgauge.predict.sensitivity.region import Points, Region, region_of
from broadgauge.results.student import student_quantile

Floats = NDArray[np.float64]

PENALTY = 4.0
"""Each further figure of a form must lower the sum of squares by this: about 5 % of false knees."""
AS_GOOD = 2.0
"""Forms whose penalised sums are so near the best can't be told from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RungArrays:
    """The rungs as numbers, from the fastest: float64[n] each."""

    x: Floats
    """Seconds a gigabyte of payload takes."""
    step_s: Floats
    error_ratio: Floats
    levels: Levels
    gain_ratio: float
    is_first_unshaped: bool
    """The first rung is the host at its fastest."""

    def fits(self) -> tuple[LadderCurve, ...]:
        """The best form, and those as good."""
        rated: list[tuple[float, int, LadderCurve]] = []
        for form in Form:
            if can_fit(form, len(self.x)):
                curve = fit_curve(form, self.x, self.step_s, self.error_ratio)
                left = misfit(curve, self.x, self.step_s, self.error_ratio)
                rated.append((left + PENALTY * form.num_parameters, form.num_parameters, curve))
        rated.sort(key=lambda each: each[:2])
        return tuple(curve for cost, _, curve in rated if cost <= rated[0][0] + AS_GOOD)

    def enough_s_per_gbyte(self, curve: LadderCurve) -> float:
        """Up to which 1/rate is a step within `gain_ratio` of the base? Infinite: at any."""
        return curve.reaches((1 + self.gain_ratio) * curve.base_s) if curve.base_s > 0 else 0.0

    @property
    def dof(self) -> int:
        """Of the scatter between launches, all rungs together."""
        return max(self.levels.dof, 1)

    def region(self, confidence: float = 0.95) -> Region | None:
        """Every curve that the launches allow; None with fewer than 3 launches."""
        if self.levels.num_blocks < FEWEST_FOR_INTERVAL:
            return None
        points = Points(x=self.x, step_s=self.step_s, error_ratio=self.error_ratio)
        return region_of(points, student_quantile((1 + confidence) / 2, self.dof))

    def common_ratio(self) -> float:
        """How far may all rungs together be off, half of 95 %? By what whole blocks differ in."""
        moved = self.levels.moved(np.full(len(self.x), 1 / len(self.x)))
        assert moved is not None, "there are launches enough"
        return student_quantile(0.975, moved[1]) * math.sqrt(moved[0])
