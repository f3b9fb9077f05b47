"""What do a script's repeated measurements come to? The standard library only."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A median with the least and the most."""

    low: float
    middle: float
    high: float


def spread(samples: Sequence[float]) -> Spread:
    return Spread(low=min(samples), middle=statistics.median(samples), high=max(samples))


def mean_ratio(ratios: Sequence[float]) -> float:
    """The geometric mean: of ratios and of what they are the inverse of alike."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def wall_s_of(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s
