"""From which bandwidth on is nothing gained? A training's step time against what a node sends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.arrays import Times

GAIN_RATIO = 0.02
"""Less than this of a step is taken for nothing: repeated measurements spread by more."""
LOWEST_GBPS, HIGHEST_GBPS = 1.0, 12_800.0
UNLIMITED_GBPS = 1e9
RATES_AN_OCTAVE = 4
StepTimes = Callable[[Sequence[TrainingCase]], Times]
"""Seconds of a step of each case: the predictor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthCurve:
    """Step time against the rate that collectives get out of a node, one direction."""

    case: TrainingCase
    rates_gbps: tuple[float, ...]
    """Carried, not nominal; ascending."""
    step_times_s: tuple[float, ...]
    floor_s: float
    """The step over a network without limit."""
    knee_gbps: float | None
    """The lowest rate whose step is within GAIN_RATIO of the floor; None: the highest rate here is
    not enough."""

    @property
    def is_indifferent(self) -> bool:
        """Is even the slowest rate here enough?"""
        return self.knee_gbps == self.rates_gbps[0]


def bandwidth_curve(case: TrainingCase, step_times: StepTimes) -> BandwidthCurve:
    """The curve of one training: only its network's rate changes, latency and transport stay."""
    octaves = np.log2(HIGHEST_GBPS / LOWEST_GBPS)
    rates = LOWEST_GBPS * 2.0 ** np.linspace(0, octaves, round(octaves * RATES_AN_OCTAVE) + 1)
    asked = [*map(float, rates), UNLIMITED_GBPS]
    times_s = step_times([with_rate(case, rate) for rate in asked])
    return BandwidthCurve(
        case=case,
        rates_gbps=tuple(map(float, rates)),
        step_times_s=tuple(map(float, times_s[:-1])),
        floor_s=float(times_s[-1]),
        knee_gbps=knee_gbps(rates, times_s[:-1], float(times_s[-1])),
    )


def with_rate(case: TrainingCase, carried_gbps: float) -> TrainingCase:
    """The same over a network that carries so much; curves measured at another rate are dropped."""
    fabric = replace(case.fabric, measured_node_gbyte_per_s=carried_gbps / 8, curves=())
    return replace(case, fabric=fabric)


def knee_gbps(rates_gbps: Times, times_s: Times, floor_s: float) -> float | None:
    """Where the curve enters the band above its floor, between the two points around it."""
    limit_s = floor_s * (1 + GAIN_RATIO)
    above = np.flatnonzero(times_s > limit_s)
    if above.size == 0:
        return float(rates_gbps[0])
    last = int(above[-1])
    if last + 1 == len(times_s):
        return None
    # A step is a constant plus bytes over the rate wherever the network decides: linear in 1/rate.
    slow, fast = 1 / rates_gbps[last], 1 / rates_gbps[last + 1]
    share = (times_s[last] - limit_s) / (times_s[last] - times_s[last + 1])
    return float(1 / (slow + share * (fast - slow)))
