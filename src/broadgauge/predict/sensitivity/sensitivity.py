"""What do step times at several link rates say, without any trace or knowledge of the model?

Three answers, each with its 95 % interval or "unknown" and why: the bytes on the critical path, the
time that no network can remove, the rate beyond which nothing is gained. From the curve of
`curve.py`, on the levels of `levels.py`. An interval holds three kinds of doubt: chance between
launches (t over blocks), how far the rungs lie off the curve, and which form the curve has, where
the data leave that open.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from broadgauge.predict.sensitivity.curve import Curve, Form, fit_curve
from broadgauge.predict.sensitivity.ladder import Answer, FittedRung, Rung, Sensitivity
from broadgauge.predict.sensitivity.levels import levels_of
from broadgauge.predict.sensitivity.spans import (
    BASE,
    ENOUGH,
    FAST,
    KNEE,
    RATE_ERROR_RATIO,
    SLOW,
    Floats,
    Ladder,
)
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_rate

FEWEST_RUNGS = 3
"""Two rates give a line through any two times, and nothing to doubt it by."""
GAIN_RATIO = 0.02
"""A step within 2 % of what no network can remove is called as good as that."""
LEAST_BASE_RATIO = 1e-3
"""A base below a thousandth of the fastest step can't be told from none."""
WIDEST_RATIO = 10.0
"""A rate that may be a tenth of itself is none to plan with."""
METHOD = "convex curve over 1/rate, t over launches and misfit"
_LARGEST_LOG = 600.0


def analyse(rungs: Sequence[Rung], *, gain_ratio: float = GAIN_RATIO) -> Sensitivity:
    """What do these rungs say? At least 3 different rates; their order does not matter.

    Raises ValueError for fewer, or for times and rates that are not positive.
    """
    ordered = _checked(rungs)
    blocks = sorted({block for rung in ordered for block in rung.step_s_by_block})
    levels = levels_of([[rung.step_s_by_block.get(block) for block in blocks] for rung in ordered])
    ladder = Ladder(
        x=np.array([8.0 / rung.payload_gbps for rung in ordered]),
        step_s=np.exp(levels.log_level),
        error_ratio=np.sqrt(levels.variance + RATE_ERROR_RATIO**2),
        levels=levels,
        gain_ratio=gain_ratio,
    )
    fits = ladder.fits()
    return _Reading(
        ladder=ladder,
        rungs=ordered,
        fits=fits,
        spans=tuple(ladder.spans(fit) for fit in fits),
    ).sensitivity()


def _checked(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    ordered = tuple(sorted(rungs, key=lambda rung: -rung.payload_gbps))
    if len({rung.payload_gbps for rung in ordered}) != len(ordered) or len(ordered) < FEWEST_RUNGS:
        raise ValueError(f"a ladder has {FEWEST_RUNGS} different rates at least, each once")
    for rung in ordered:
        values = (rung.rate_gbps, rung.payload_gbps, *rung.step_s_by_block.values())
        if len(values) < 3 or not all(math.isfinite(value) and value > 0 for value in values):
            raise ValueError(f"rates and times are positive numbers, and there is one: {rung}")
    return ordered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """From curves and their spans to answers."""

    ladder: Ladder
    rungs: tuple[Rung, ...]
    """From the fastest."""
    fits: tuple[Curve, ...]
    spans: tuple[Floats | None, ...]

    def sensitivity(self) -> Sensitivity:
        curve = self.fits[0]
        fastest_s = curve.step_s(float(self.ladder.x[0]))
        return Sensitivity(
            curve=curve,
            rungs=tuple(reversed(list(self._fitted()))),
            critical_bytes=self._critical_bytes(),
            fast_bytes=self._fast_bytes(),
            base_s=self._base(),
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
            )

    def _estimate(
        self, value: float, low: float | None, high: float | None, method: str = METHOD
    ) -> Estimate:
        return Estimate(
            value=value,
            low=low,
            high=high,
            launches=self.ladder.levels.num_blocks,
            trials=sum(len(rung.step_s_by_block) for rung in self.rungs),
            method=method,
        )

    def _span(self, which: int) -> tuple[float, float, float] | None:
        """A figure of the best curve, and the ends that it has over all possible ones. Rates stay
        logarithms. None: unknown spread."""
        value = float(self.ladder.figures(self.fits[0]).all()[which])
        low, high = value, value
        for curve, halves in zip(self.fits, self.spans, strict=True):
            if halves is None:
                return None
            figure, half = float(self.ladder.figures(curve).all()[which]), float(halves[which])
            low = min(low, figure - half if half < math.inf else -math.inf)
            high = max(high, figure + half if half < math.inf else math.inf)
        return value, low, high

    def _plain(self, which: int) -> Estimate:
        """A figure that is not below 0."""
        value = float(self.ladder.figures(self.fits[0]).all()[which])
        span = self._span(which)
        if span is None:
            return self._estimate(value, None, None)
        return self._estimate(value, max(0.0, span[1]), _finite(span[2]))

    def _critical_bytes(self) -> Answer:
        if self.fits[0].form is not Form.FLAT:
            return Answer(estimate=self._plain(SLOW))
        return Answer(
            estimate=None,
            at_most=self._most_bytes(),
            why="the step is as long at the slowest rate as at the fastest",
        )

    def _most_bytes(self) -> float | None:
        """Of a flat ladder: which slope would have been seen?"""
        line = fit_curve(Form.LINE, self.ladder.x, self.ladder.step_s, self.ladder.error_ratio)
        halves = self.ladder.spans(line)
        return None if halves is None else _finite(line.slow_bytes + float(halves[SLOW]))

    def _fast_bytes(self) -> Answer:
        if self.fits[0].form is Form.TWO_SLOPES:
            return Answer(estimate=self._plain(FAST))
        return Answer(estimate=None, why="one slope is all that is seen")

    def _base(self) -> Answer:
        """At most what was measured, since no network is slower than a slower one; at least what
        the line through the two fastest rungs has at 1/rate = 0, since the curve is convex."""
        estimate = self._plain(BASE)
        least, most = self._bounds_of_base()
        if self._rests_on_one_rung() and estimate.low is not None:
            estimate = replace(estimate, low=min(estimate.low, least))
        return Answer(estimate=estimate, at_least=least, at_most=most)

    def _bounds_of_base(self) -> tuple[float, float]:
        (x0, x1), (t0, t1) = self.ladder.x[:2].tolist(), self.ladder.step_s[:2].tolist()
        return max(0.0, t0 - x0 * max(0.0, (t1 - t0) / (x1 - x0))), t0

    def _rests_on_one_rung(self) -> bool:
        """Is the flat part one rung only? Then it may go on falling beyond it."""
        curve = self.fits[0]
        return curve.form is Form.HINGE and curve.knee_s_per_gbyte < float(self.ladder.x[1])

    def _enough(self) -> Answer:
        curve = self.fits[0]
        if curve.form is Form.FLAT:
            slowest = min(rung.rate_gbps for rung in self.rungs)
            return Answer(estimate=None, at_most=slowest, why="the slowest rate is enough")
        if curve.base_s <= LEAST_BASE_RATIO * float(self.ladder.step_s[0]):
            return Answer(
                estimate=None,
                at_least=max(rung.rate_gbps for rung in self.rungs),
                why="no time is seen that the network could not remove",
            )
        answer = self._rate(ENOUGH)
        low_base = self._plain(BASE).low
        is_open = low_base is not None and low_base <= 0
        if answer.estimate is not None and (is_open or self._rests_on_one_rung()):
            why = "the time that no network can remove may lie lower"
            answer = replace(answer, estimate=replace(answer.estimate, high=None), why=why)
        return _if_told(answer)

    def _knee(self) -> Answer:
        if self.fits[0].form in (Form.FLAT, Form.LINE):
            return Answer(estimate=None, why="one slope is all that is seen")
        counted = [fit.form in (Form.HINGE, Form.TWO_SLOPES) for fit in self.fits]
        return _if_told(self._rate(KNEE, counted))

    def _rate(self, which: int, counted: Sequence[bool] | None = None) -> Answer:
        """A 1/rate of payload as a line rate."""
        reading = self
        if counted is not None:
            kept = [place for place, is_counted in enumerate(counted) if is_counted]
            reading = replace(
                self,
                fits=tuple(self.fits[place] for place in kept),
                spans=tuple(self.spans[place] for place in kept),
            )
        log_x = float(self.ladder.figures(self.fits[0]).all()[which])
        span = reading._span(which)
        value = self._line_rate(log_x)
        assert value is not None, "a curve that rises has such a rate"
        low = high = None
        if span is not None:
            low, high = self._line_rate(span[2]), self._line_rate(span[1])
        return Answer(estimate=self._estimate(value, 0.0 if span and low is None else low, high))

    def _line_rate(self, log_x: float) -> float | None:
        """None where it is without limit."""
        if not abs(log_x) < _LARGEST_LOG:
            return None
        return 8.0 / math.exp(log_x) * self.rungs[0].rate_gbps / self.rungs[0].payload_gbps


def _if_told(answer: Answer) -> Answer:
    """A rate whose interval spans more than a factor of ten is unknown; an end that is open counts
    as the figure itself."""
    estimate = answer.estimate
    if estimate is None or estimate.low is None:
        return answer
    low, high = estimate.low, estimate.high
    if (estimate.value if high is None else high) <= WIDEST_RATIO * low:
        return answer
    ends = (f"from {show_rate(low)}" if low else "", f"to {show_rate(high)}" if high else "on")
    fitting = "any rate" if not low and high is None else f"anything {' '.join(filter(None, ends))}"
    words = (f"{fitting} fits what was measured", answer.why)
    return Answer(
        estimate=None, at_least=low or None, at_most=high, why="; ".join(filter(None, words))
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
