"""Proves results/network_share.py: one definition of a case's share, with an honest interval."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.results.network_share import CUT, ShareOfLaunches
from broadgauge.results.summary import cut_at_whole
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.workloads.metrics import is_part

steps = st.lists(st.floats(0.01, 10), min_size=3, max_size=8)


def share_of(costs_s: list[float], steps_s: list[float]) -> ShareOfLaunches:
    return ShareOfLaunches(costs_s=tuple(costs_s), steps_s=tuple(steps_s), num_trials=len(costs_s))


def test_the_issue_of_the_two_launches() -> None:
    """+26 and −15 %: their mean is 5.5 %, and the 1.75 ms of 65.8 ms are 2.7 %."""
    share = share_of([0.0117, -0.0082], [0.045, 0.0866])
    assert np.mean(share.ratios) == pytest.approx(0.083, abs=0.01)
    estimate = share.estimate()
    assert estimate.value == pytest.approx(0.00175 / 0.0658, rel=1e-6)
    assert estimate.low is None
    assert share.disagrees_in_sign


@given(steps_s=steps, ratio=st.floats(-0.5, 0.99))
def test_a_share_that_all_launches_agree_on_is_that_share(
    steps_s: list[float], ratio: float
) -> None:
    estimate = share_of([ratio * each for each in steps_s], steps_s).estimate()
    assert estimate.value == pytest.approx(ratio, abs=1e-9)
    assert estimate.low == pytest.approx(ratio, abs=1e-6)
    assert estimate.high == pytest.approx(ratio, abs=1e-6)


@given(steps_s=steps, data=st.data())
@settings(max_examples=50)
def test_no_share_reaches_beyond_the_step(steps_s: list[float], data: st.DataObject) -> None:
    costs_s = [data.draw(st.floats(0, each)) for each in steps_s]
    estimate = share_of(costs_s, steps_s).estimate()
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.value + 1e-12
    assert estimate.value - 1e-12 <= estimate.high <= 1
    is_whole_step = costs_s == steps_s  # then the interval ends there by itself
    assert (CUT in estimate.method) == (estimate.high == 1) or is_whole_step


@pytest.mark.parametrize(
    ("ratios", "disagrees"),
    [
        ((0.26, -0.15), True),
        ((0.01, -0.01, 0.02), False),
        ((0.05, -0.001), True),
        ((0.9, 0.2), False),
        ((-0.2, -0.1), False),
    ],
)
def test_signs_disagree_where_the_difference_is_no_trifle(
    ratios: tuple[float, ...], disagrees: bool
) -> None:
    assert share_of([*ratios], [1.0] * len(ratios)).disagrees_in_sign is disagrees


def test_no_part_of_a_whole_reaches_beyond_it() -> None:
    """Cores that were busy for 57 to 117 % of the time, by the launches alone."""
    busy = Estimate(value=0.87, low=0.57, high=1.17, launches=3, trials=3, method="mean")
    cut = cut_at_whole(busy)
    assert (cut.low, cut.value, cut.high) == (0.57, 0.87, 1.0)
    assert cut.method == "mean, cut at 100 %"
    assert cut_at_whole(replace(busy, high=0.97)).method == "mean"
    assert is_part("cpu_busy_ratio")
    assert not is_part("amplification_ratio")


def test_its_interval_holds_the_truth() -> None:
    """5 launches, steps that differ by 10 %, a cost that differs by 20 % more: 95 % at least 92."""
    chance = np.random.default_rng(1)
    held = 0
    for _ in range(500):
        steps_s = np.exp(chance.normal(0, 0.1, 5))
        costs_s = 0.4 * steps_s * chance.normal(1, 0.2, 5)
        estimate = share_of(costs_s.tolist(), steps_s.tolist()).estimate()
        assert estimate.low is not None
        assert estimate.high is not None
        held += estimate.low <= 0.4 <= estimate.high
    assert held >= 460
