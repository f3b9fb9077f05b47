"""Is what so many launches could show, and how many would show it, true in simulation?"""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from broadgauge.results.resolution import launches_for, smallest_ratio
from broadgauge.results.statistics import ComparisonVerdict, LaunchPair, compare_paired

SCATTERED = [1.0 + sign * 0.04 for sign in (1, -1, -1, 1, 1, -1, -1, 1)]
SPREAD = float(np.std(np.log(SCATTERED), ddof=2))


def alternating(ratios: Sequence[float]) -> list[LaunchPair]:
    return [
        LaunchPair(
            a_values=[1.0],
            b_values=[ratio],
            a_middle_s=float(block % 2),
            b_middle_s=float(1 - block % 2),
        )
        for block, ratio in enumerate(ratios)
    ]


def share_seen(ratio: float, launches: int) -> float:
    """In what share of runs is this ratio told from 1?"""
    rng = np.random.default_rng(16)
    rows = ratio * np.exp(SPREAD * rng.standard_normal((1_000, launches)))
    verdicts = [compare_paired(alternating(row)).verdict for row in rows.tolist()]
    return float(np.mean([verdict is ComparisonVerdict.DIFFERENT for verdict in verdicts]))


@pytest.mark.parametrize("difference_ratio", [0.03, 0.05])
def test_the_launches_needed_show_it_four_times_in_five(difference_ratio: float) -> None:
    needed = launches_for(compare_paired(alternating(SCATTERED)), difference_ratio)
    assert needed is not None
    assert 0.75 <= share_seen(1 + difference_ratio, needed) <= 0.88, needed


def test_the_smallest_difference_is_seen_four_times_in_five() -> None:
    smallest = smallest_ratio(compare_paired(alternating(SCATTERED)))
    assert smallest is not None
    assert 0.75 <= share_seen(1 + smallest, len(SCATTERED)) <= 0.88, smallest


def test_what_was_seen_decides_nothing() -> None:
    """The same spread around another mean shows the same, and needs the same."""
    shifted = [1.3 * ratio for ratio in SCATTERED]
    one, other = (compare_paired(alternating(row)) for row in (SCATTERED, shifted))
    assert smallest_ratio(one) == pytest.approx(smallest_ratio(other))
    assert launches_for(one, 0.03) == launches_for(other, 0.03)


def test_fewer_than_three_launches_show_nothing() -> None:
    for few in (alternating([1.1]), alternating([1.1, 1.2])):
        assert smallest_ratio(compare_paired(few)) is None
        assert launches_for(compare_paired(few), 0.03) is None


def test_a_difference_out_of_reach_needs_more_than_can_be_run() -> None:
    wild = compare_paired(alternating([1.0, 3.0, 0.3, 2.0, 0.5]))
    assert launches_for(wild, 0.001) is None
    exact = compare_paired(alternating([1.0] * 6))
    assert launches_for(exact, 0.03) == 5
    smallest = smallest_ratio(exact)
    assert smallest is not None
    assert math.isclose(smallest, 0, abs_tol=1e-9)
