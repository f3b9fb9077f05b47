"""How long does a call take on this device? Medians over repetitions, the device warmed up."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from broadgauge.probes.calibration.results import Timing
from broadgauge.probes.devices import Device

FEWEST_SAMPLES = 5
MOST_SAMPLES = 50
SHORTEST_SAMPLE_S = 1e-3
"""Shorter calls are repeated within a sample: events resolve 0.5 µs, and a GPU that waits for each
call's launch would show the launch instead."""


def time_call(call: Callable[[], Any], device: Device, *, budget_s: float) -> Timing:
    """How long does `call` take, one after the other, in about so much time in all?"""
    call()
    once_s = min(_sample_s(call, device, 1) for _ in range(3))
    calls = max(1, round(SHORTEST_SAMPLE_S / once_s))
    samples = round(budget_s / (_sample_s(call, device, calls) * calls))
    samples = min(max(samples, FEWEST_SAMPLES), MOST_SAMPLES)
    return timing_of([_sample_s(call, device, calls) for _ in range(samples)])


def timing_of(samples_s: Sequence[float]) -> Timing:
    """Median and quartiles, to four digits: more is noise."""
    if len(samples_s) < 2:
        low_s = high_s = samples_s[0]
    else:
        low_s, _, high_s = statistics.quantiles(samples_s, n=4, method="inclusive")
    return Timing(
        median_s=rounded(statistics.median(samples_s)),
        low_s=rounded(low_s),
        high_s=rounded(high_s),
        repetitions=len(samples_s),
    )


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _sample_s(call: Callable[[], Any], device: Device, calls: int) -> float:
    """Seconds of one call, mean of `calls` in a row."""
    device.synchronize()
    clock = device.clock()
    clock.tick()
    for _ in range(calls):
        call()
    clock.tick()
    return max(clock.intervals_s()[0], 1e-9) / calls
