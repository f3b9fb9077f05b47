"""What may be said of a ladder, and what is not yet known?

A floor or a knee is stated where two rungs lie beyond all of the knee's 95 % interval, or an
unshaped one, and where its interval is narrow enough to plan with. Else it is said between which
ends it lies, and what would tell: faster rates, slower ones, or more launches.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from broadgauge.predict.sensitivity.curve import Form, LadderCurve
from broadgauge.predict.sensitivity.figures import RungArrays
from broadgauge.predict.sensitivity.ladder import FittedRung, Lack, LadderAnswer, Rung, Sensitivity
from broadgauge.predict.sensitivity.levels import FEWEST_FOR_INTERVAL
from broadgauge.predict.sensitivity.region import Region
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_rate, show_time

Floats = NDArray[np.float64]

FEWEST_BEYOND = 2
"""Rungs beyond a knee: of one, nobody knows whether a step goes on falling or launches scattered.
Where a step still gets shorter there, one more: a slope through two is one that nothing tests."""
LEAST_BASE_RATIO = 1e-3
"""A base below a thousandth of the fastest step can't be told from none."""
WIDEST_RATIO = 10.0
"""A rate that may be a tenth of itself is none to plan with."""
KNEE_CONFIDENCE = 0.99
"""Of a knee's interval. Where the rungs have to lie beyond the knee for it to be stated, those are
chosen that lie far off by chance: of the knees that are stated 95 % intervals held 86 %, with
launches that scatter by 20 % 69 %; those of 99 % hold 95 % (docs/sensitivity.md)."""
WIDEST_FLOOR_RATIO = 2.0
"""A time that may be half of itself is none either."""
MOST_LAUNCHES = 200
"""More than that nobody runs for one figure."""
METHOD = "convex curve over 1/rate, profile likelihood over launches"
KNEE_METHOD = f"{METHOD}, 99 % interval"
NO_KNEE = "one slope is all that is seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """From curves to answers."""

    ladder: RungArrays
    rungs: tuple[Rung, ...]
    """From the fastest."""
    fits: tuple[LadderCurve, ...]
    """The best form, and those as good."""
    region: Region | None
    """None: too few launches, or exact times."""
    is_exact: bool

    def sensitivity(self) -> Sensitivity:
        """All that is said."""
        curve = self.fits[0]
        fastest_s = curve.step_s(float(self.ladder.x[0]))
        return Sensitivity(
            curve=curve,
            rungs=tuple(reversed(list(self._fitted()))),
            critical_bytes=self._critical_bytes(),
            fast_bytes=self._fast_bytes(),
            base_s=self._floor(),
            curve_base_s=self._curve_base(),
            enough_gbps=self._enough(),
            knee_gbps=self._knee(),
            gain_ratio=self.ladder.gain_ratio,
            is_extrapolated=fastest_s > (1 + self.ladder.gain_ratio) * curve.base_s,
            possible_forms=tuple(fit.form for fit in self.fits),
        )

    def _fitted(self) -> Iterator[FittedRung]:
        for place, rung in enumerate(self.rungs):
            value = float(self.ladder.step_s[place])
            ends = self.ladder.levels.interval(place)
            yield FittedRung(
                rate_gbps=rung.rate_gbps,
                payload_gbps=rung.payload_gbps,
                step_s=self._estimate(
                    value,
                    None if ends is None else value * ends[0],
                    None if ends is None else value * ends[1],
                    method="typical of launches, t interval",
                ),
                fitted_s=self.fits[0].step_s(float(self.ladder.x[place])),
                is_unshaped=rung.is_unshaped,
                rate_error_ratio=rung.rate_error_ratio,
                name=rung.name,
            )

    def _estimate(
        self, value: float, low: float | None, high: float | None, method: str = METHOD
    ) -> Estimate:
        """With ends that hold the value."""
        return Estimate(
            value=value,
            low=None if low is None else min(low, value),
            high=None if high is None else max(high, value),
            launches=self.ladder.levels.num_blocks,
            trials=sum(len(rung.step_s_by_block) for rung in self.rungs),
            method=method,
        )

    def _too_few_launches(self) -> LadderAnswer:
        launches = self.ladder.levels.num_blocks
        have = "1 launch gives" if launches == 1 else f"{launches} launches give"
        return LadderAnswer(
            estimate=None,
            why=f"{have} no interval",
            lack=Lack.LAUNCHES,
            launches=FEWEST_FOR_INTERVAL,
        )

    def _critical_bytes(self) -> LadderAnswer:
        if self.fits[0].form is Form.FLAT:
            return LadderAnswer(
                estimate=None,
                at_most=self._most_bytes(),
                why="the step is as long at the slowest rate as at the fastest",
                lack=Lack.SLOWER_RATES,
            )
        return LadderAnswer(estimate=self._bytes(self.fits[0].slow_bytes, (0.0, 1.0, 1.0)))

    def _fast_bytes(self) -> LadderAnswer:
        if self.fits[0].form is Form.TWO_SLOPES:
            return LadderAnswer(estimate=self._bytes(self.fits[0].fast_bytes, (0.0, 1.0, 0.0)))
        return LadderAnswer(estimate=None, why=NO_KNEE)

    def _bytes(self, value: float, weights: tuple[float, float, float]) -> Estimate:
        if self.region is None:
            return self._estimate(value, None, None)
        # Two rungs at least show a slope: a knee beside the slowest would be free to be steep.
        seen = self.region.up_to(float(self.ladder.x[-2]))
        low, high = (1e9 * end for end in seen.ends(np.array(weights)))
        return self._estimate(value, *self._with_common(value, low, high))

    def _most_bytes(self) -> float | None:
        """Of a flat ladder: how many at the slowest rate would not have been seen?"""
        if self.region is None:
            return None
        slowest = float(self.ladder.x[-1])
        beyond = (slowest - self.region.knees) / slowest
        ones = np.ones_like(beyond)
        _, high = self.region.ends(np.stack([0 * ones, ones, beyond], axis=1))
        return 1e9 * high

    def _with_common(self, value: float, low: float, high: float) -> tuple[float, float]:
        """With what all rungs together may be off by: independent terms add up in squares."""
        common = self.ladder.common_ratio() * value
        below, above = max(0.0, value - low), max(0.0, high - value)
        return max(0.0, value - math.hypot(below, common)), value + math.hypot(above, common)

    def _floor(self) -> LadderAnswer:
        base = self._curve_base()
        if self.is_exact:
            return LadderAnswer(estimate=base)
        if base.low is None or base.high is None:
            return self._too_few_launches()
        why = self._why_no_floor()
        lack = Lack.FASTER_RATES if why else None
        launches = None
        if not why and base.high > WIDEST_FLOOR_RATIO * base.low:
            why = f"anything from {show_time(base.low)} to {show_time(base.high)} fits"
            lack = Lack.LAUNCHES
            launches = self._launches_for(base.low, base.high, WIDEST_FLOOR_RATIO)
        return LadderAnswer(
            estimate=None if why else base,
            at_least=base.low,
            at_most=base.high,
            why=why,
            lack=lack,
            launches=launches,
        )

    def _curve_base(self) -> Estimate:
        """At least where a curve of the region meets 1/rate = 0, and at most its time at the
        fastest rung, since beyond it a curve may be flat. What the host carries is a guess within
        a factor of two: beyond an unshaped rung it may fall for as long again."""
        value = self.fits[0].base_s
        if self.region is None:
            return self._estimate(value, None, None)
        first = float(self.ladder.x[0])
        beyond = -first if self.ladder.is_first_unshaped else 0.0
        low, _ = self.region.ends(np.array([1.0, beyond, 0.0]))
        _, high = self.region.ends(np.array([1.0, first, 0.0]))
        return self._estimate(value, *self._with_common(value, low, high))

    def _why_no_floor(self) -> str:
        """Empty: enough rungs lie beyond."""
        if self.ladder.is_first_unshaped or self.fits[0].form is Form.FLAT:
            return ""
        if self._has_knee():
            return self._why_no_rungs_beyond()
        return "a step gets shorter up to the fastest rate"

    def _has_knee(self) -> bool:
        return self.region is not None and self.region.has_knee(self.ladder.dof)

    def _why_no_rungs_beyond(self) -> str:
        """Which rungs are beyond the knee at 95 %? Empty: an unshaped one, or enough."""
        assert self.region is not None, "only a region has a knee"
        num_beyond = int((self.ladder.x <= self.region.knees[0]).sum())
        is_flat = self.region.ends(np.array([0.0, 1.0, 0.0]))[0] <= 0
        needed = FEWEST_BEYOND if is_flat else FEWEST_BEYOND + 1
        if self.ladder.is_first_unshaped or num_beyond >= needed:
            return ""
        have = {0: "no rung is", 1: "one rung is"}.get(num_beyond, f"{num_beyond} rungs are")
        takes = "two" if is_flat else "three where a step still gets shorter there"
        return f"{have} beyond the knee for sure, and it takes {takes}, or an unshaped one"

    def _knee(self) -> LadderAnswer:
        knees = [fit.knee_s_per_gbyte for fit in self.fits if fit.knee_s_per_gbyte > 0]
        is_straight = self.fits[0].form in (Form.FLAT, Form.LINE)
        if self.is_exact:
            return self._exact_rate(0.0 if is_straight else knees[0])
        if self.region is None:
            return self._too_few_launches()
        if not self._has_knee():
            if is_straight:
                return LadderAnswer(estimate=None, why=NO_KNEE)
            return LadderAnswer(
                estimate=None, why="a straight line fits as well", lack=Lack.LAUNCHES
            )
        why, lack = self._why_no_rungs_beyond(), Lack.FASTER_RATES
        if not why and self.region.knees[-1] > self.ladder.x[-2]:
            why, lack = "fewer than two rungs are below it for sure", Lack.SLOWER_RATES
        wide = self.ladder.region(KNEE_CONFIDENCE)
        assert wide is not None, "there are launches enough"
        first, last = float(wide.knees[0]), float(wide.knees[-1])
        seen = (float(self.region.knees[0]), float(self.region.knees[-1]))
        value = min(max(knees[0], seen[0]), seen[1]) if knees else math.sqrt(seen[0] * seen[1])
        answer = self._rate(value, first, last, why, lack)
        if answer.estimate is None:
            return answer
        return replace(answer, estimate=replace(answer.estimate, method=KNEE_METHOD))

    def _enough(self) -> LadderAnswer:
        curve = self.fits[0]
        slowest = min(rung.rate_gbps for rung in self.rungs)
        if self.is_exact and curve.form is Form.FLAT:
            return LadderAnswer(estimate=None, at_most=slowest, why="the slowest rate is enough")
        if curve.base_s <= LEAST_BASE_RATIO * float(self.ladder.step_s[0]):
            return LadderAnswer(
                estimate=None,
                at_least=max(rung.rate_gbps for rung in self.rungs),
                why="no time is seen that the network could not remove",
            )
        x = self.ladder.enough_s_per_gbyte(curve)
        if self.is_exact:
            return self._exact_rate(x)
        if self.region is None:
            return self._too_few_launches()
        first, last = self.region.reached(self.ladder.gain_ratio)
        if first >= float(self.ladder.x[-1]):
            return LadderAnswer(estimate=None, at_most=slowest, why="the slowest rate is enough")
        num_beyond = int((self.ladder.x <= first).sum())
        needed = 1 if self.ladder.is_first_unshaped else FEWEST_BEYOND
        why = "" if num_beyond >= needed else "too few rungs are beyond it for sure"
        return self._rate(min(max(x, first), last), first, last, why, Lack.FASTER_RATES)

    def _exact_rate(self, x: float) -> LadderAnswer:
        value = self._line_rate(x)
        if not value:
            return LadderAnswer(estimate=None, why=NO_KNEE)
        return LadderAnswer(estimate=self._estimate(value, None, None))

    def _rate(self, x: float, first: float, last: float, why: str, lack: Lack) -> LadderAnswer:
        """A 1/rate of payload and its ends as a line rate, stated unless there is a `why` or the
        ends are too far apart."""
        low, high = self._line_rate(last) or 0.0, self._line_rate(first)
        launches = None
        if not why and (high is None or high > WIDEST_RATIO * low):
            fastest_shaped = float(self.ladder.x[1 if self.ladder.is_first_unshaped else 0])
            lack = Lack.FASTER_RATES if first < fastest_shaped else Lack.LAUNCHES
            why = f"{_fitting(low, high)} fits what was measured"
            if lack is Lack.LAUNCHES and low and high is not None:
                launches = self._launches_for(low, high, WIDEST_RATIO)
        if why:
            return LadderAnswer(
                estimate=None,
                at_least=low or None,
                at_most=high,
                why=why,
                lack=lack,
                launches=launches,
            )
        value = self._line_rate(x)
        assert value is not None, "between two rates"
        return LadderAnswer(estimate=self._estimate(value, low, high))

    def _line_rate(self, x: float) -> float | None:
        """None where it is without limit."""
        if x <= 0:
            return None
        return 8.0 / x * self.rungs[-1].rate_gbps / self.rungs[-1].payload_gbps

    def _launches_for(self, low: float, high: float, widest: float) -> int | None:
        """How many would make the interval so narrow? Its logarithm goes with 1 / √launches."""
        if low <= 0:
            return None
        times = (math.log(high / low) / math.log(widest)) ** 2
        needed = math.ceil(self.ladder.levels.num_blocks * times) + 1
        return needed if needed <= MOST_LAUNCHES else None


def _fitting(low: float, high: float | None) -> str:
    """`anything from 57.6 Mbit/s to 1.36 Gbit/s`."""
    if not low and high is None:
        return "any rate"
    ends = (f"from {show_rate(low)}" if low else "", f"to {show_rate(high)}" if high else "on")
    return f"anything {' '.join(filter(None, ends))}"
