"""Do the intervals hold the truth as often as they say? On simulated trials, and by laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.results import simulated
from tests.sharding import one_of

from broadgauge.results.statistics import (
    ComparisonVerdict,
    LaunchPair,
    compare_paired,
    compare_unpaired,
    drift_ratio,
    is_drifting,
    mean_of_launches,
)

REPETITIONS = 5_000
TRUE_RATIO = 1.07
(DRIFTING,) = (each for each in simulated.SCENARIOS if each.name == "drift 3, rotated")
"""The one scenario of each test that every commit simulates."""
# 99 % of all binomial counts at 95 % lie this near: the band must hold the count with this margin.
MARGIN = 2.576 * math.sqrt(0.95 * 0.05 / REPETITIONS)


def coverage(scenario: simulated.Scenario, launches: int) -> float:
    """How often does the interval hold the true ratio?"""
    runs = simulated.simulated_runs(
        scenario, launches=launches, repetitions=REPETITIONS, true_ratio=TRUE_RATIO, seed=11
    )
    ratios = [compare_paired(pairs).ratio for pairs in runs]
    return float(np.mean([ratio.low <= TRUE_RATIO <= ratio.high for ratio in ratios]))


def ids(scenario: simulated.Scenario) -> str:
    return scenario.name


@pytest.mark.parametrize("launches", one_of([10, 20], 10))
@pytest.mark.parametrize(
    "scenario", one_of([*simulated.SCENARIOS, *simulated.BIMODAL], DRIFTING), ids=ids
)
def test_95_percent_covers_95_percent(scenario: simulated.Scenario, launches: int) -> None:
    covered = coverage(scenario, launches)
    assert 0.93 + MARGIN <= covered <= 0.97 - MARGIN, covered


@pytest.mark.parametrize("launches", one_of([5, 6, 9], 6))
@pytest.mark.parametrize("scenario", one_of(simulated.SCENARIOS, DRIFTING), ids=ids)
def test_few_launches_cover_enough(scenario: simulated.Scenario, launches: int) -> None:
    covered = coverage(scenario, launches)
    assert covered >= 0.93, covered


@pytest.mark.parametrize("launches", one_of([3, 5, 10], 5))
@pytest.mark.parametrize("scenario", one_of(simulated.SCENARIOS, DRIFTING), ids=ids)
def test_a_against_a_is_rarely_different(scenario: simulated.Scenario, launches: int) -> None:
    runs = simulated.simulated_runs(
        scenario, launches=launches, repetitions=1_000, true_ratio=1.0, seed=12
    )
    different = sum(compare_paired(run).verdict is ComparisonVerdict.DIFFERENT for run in runs)
    p_value = stats.binomtest(different, 1_000, 0.05, alternative="greater").pvalue
    assert p_value > 0.01, different


@pytest.mark.parametrize(("a_launches", "b_launches"), [(5, 5), (5, 10), (10, 10)])
def test_two_runs_cover_the_truth(a_launches: int, b_launches: int) -> None:
    rng = np.random.default_rng(13)
    a = np.exp(0.02 * rng.standard_normal((REPETITIONS, a_launches, 1))).tolist()
    b = (1.1 * np.exp(0.04 * rng.standard_normal((REPETITIONS, b_launches, 1)))).tolist()
    ratios = [compare_unpaired(*run).ratio for run in zip(a, b, strict=True)]
    covered = np.mean([ratio.low <= 1.1 <= ratio.high for ratio in ratios])
    assert 0.93 + MARGIN <= covered <= 0.97 - MARGIN


@pytest.mark.parametrize("launches", [3, 5, 10])
def test_the_mean_of_launches_covers_the_truth(launches: int) -> None:
    rng = np.random.default_rng(14)
    effects = 1 + 0.1 * rng.standard_normal((REPETITIONS, launches, 1))
    runs = (effects + 0.2 * rng.standard_normal((REPETITIONS, launches, 4))).tolist()
    figures = [mean_of_launches(run) for run in runs]
    covered = np.mean([figure.low <= 1 <= figure.high for figure in figures])
    assert 0.93 + MARGIN <= covered <= 0.97 - MARGIN


@pytest.mark.parametrize("launches", [3, 4, 5, 8])
def test_the_fast_comparison_is_the_plain_one(launches: int) -> None:
    scenario = simulated.Scenario(name="reference", drift_of_spread=10, order="random of two")
    slow = simulated.plain if launches < 5 else simulated.adjusted
    for pairs in simulated.simulated_runs(
        scenario, launches=launches, repetitions=20, true_ratio=TRUE_RATIO, seed=15
    ):
        logs = [np.log(np.mean(pair.b_values) / np.mean(pair.a_values)) for pair in pairs]
        distances = [pair.b_middle_s - pair.a_middle_s for pair in pairs]
        value, half = slow(np.array([logs]), np.array([distances]))
        ratio = compare_paired(pairs).ratio
        assert ratio.value == pytest.approx(math.exp(value[0]), rel=1e-9)
        assert ratio.low == pytest.approx(math.exp(value[0] - half[0]), rel=1e-9)
        assert ratio.high == pytest.approx(math.exp(value[0] + half[0]), rel=1e-9)


def test_the_p_values_are_scipys() -> None:
    a, b = [[1.0], [1.1], [1.05]], [[1.2], [1.15], [1.3], [1.02]]
    welch = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).pvalue[0]
    assert compare_unpaired(a, b).p_value == pytest.approx(welch, rel=1e-9)
    paired = stats.ttest_rel(np.log(b[:3]), np.log(a)).pvalue[0]
    same_order = [pair_of(*sides, 0.0, 1.0) for sides in zip(a, b[:3], strict=True)]
    assert compare_paired(same_order).p_value == pytest.approx(paired, rel=1e-9)


def pair_of(a: list[float], b: list[float], a_middle_s: float, b_middle_s: float) -> LaunchPair:
    return LaunchPair(a_values=a, b_values=b, a_middle_s=a_middle_s, b_middle_s=b_middle_s)


def alternating(ratios: list[float]) -> list[LaunchPair]:
    return [pair_of([1.0], [ratio], k % 2, 1 - k % 2) for k, ratio in enumerate(ratios)]


def test_linear_drift_is_cancelled_to_the_last_digit() -> None:
    drift = 0.3
    pairs = []
    for block in range(7):
        a_slot, b_slot = (2 * block, 2 * block + 1) if block % 2 else (2 * block + 1, 2 * block)
        a, b = math.exp(drift * a_slot), 1.02 * math.exp(drift * b_slot)
        pairs.append(pair_of([a], [b], a_slot, b_slot))
    found = compare_paired(pairs)
    assert found.ratio.value == pytest.approx(1.02, rel=1e-12)
    assert found.verdict is ComparisonVerdict.DIFFERENT


def test_few_launches_give_no_verdict() -> None:
    one, two, three = (compare_paired(alternating([2.0, 2.001, 1.999][:n])) for n in (1, 2, 3))
    assert (one.ratio.low, one.ratio.high, one.p_value) == (None, None, None)
    assert one.ratio.method == "within one launch"
    assert one.verdict is two.verdict is ComparisonVerdict.CANNOT_TELL
    assert two.ratio.low is not None
    assert three.verdict is ComparisonVerdict.DIFFERENT
    assert any("provisional" in note for note in three.notes)
    enough = compare_paired(alternating([2.0, 2.1, 1.9, 2.05, 2.0]))
    assert not any("provisional" in note for note in enough.notes)


def test_what_the_schedule_cannot_cancel_is_said() -> None:
    same_order = [pair_of([1.0], [ratio], 0.0, 1.0) for ratio in (1.1, 1.2, 1.15, 1.1, 1.2)]
    assert any("same order" in note for note in compare_paired(same_order).notes)
    assert any("not interleaved" in note for note in compare_unpaired([[1.0]], [[2.0]]).notes)


def test_identical_sides_do_not_differ() -> None:
    same = compare_paired(alternating([1.0] * 6))
    assert same.verdict is ComparisonVerdict.NO_DIFFERENCE_SEEN
    assert same.p_value == 1.0
    # One rounding of a double is not a difference, though its spread is nought.
    nearly = compare_paired(alternating([1.0 + 2**-52] * 6))
    assert nearly.verdict is ComparisonVerdict.NO_DIFFERENCE_SEEN


def test_values_without_a_ratio_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        compare_paired([pair_of([1.0], [0.0], 0, 1)])
    with pytest.raises(ValueError, match="trial at least"):
        compare_unpaired([[1.0]], [[]])
    with pytest.raises(ValueError, match="finite"):
        mean_of_launches([[math.nan]])
    with pytest.raises(ValueError, match="finite times"):
        compare_paired([pair_of([1.0], [1.0], math.inf, 0)])
    with pytest.raises(ValueError, match="launch at least"):
        compare_paired([])


positive = st.floats(1e-3, 1e3)
sides = st.lists(positive, min_size=1, max_size=4)
times = st.integers(0, 10).map(float)
runs_of_pairs = st.lists(st.builds(pair_of, sides, sides, times, times), min_size=1, max_size=9)


def swapped(pair: LaunchPair) -> LaunchPair:
    return pair_of(list(pair.b_values), list(pair.a_values), pair.b_middle_s, pair.a_middle_s)


@given(runs_of_pairs)
def test_swapping_the_sides_inverts_the_ratio(pairs: list[LaunchPair]) -> None:
    there, back = compare_paired(pairs), compare_paired([swapped(pair) for pair in pairs])
    assert back.ratio.value == pytest.approx(1 / there.ratio.value, rel=1e-9)
    if there.ratio.low is not None and there.ratio.low > 1e-6 and there.ratio.high < 1e6:
        assert back.ratio.high == pytest.approx(1 / there.ratio.low, rel=1e-6)
        assert back.ratio.low == pytest.approx(1 / there.ratio.high, rel=1e-6)
    assert back.verdict is there.verdict


@given(runs_of_pairs, st.integers(-20, 20))
def test_units_change_nothing(pairs: list[LaunchPair], exponent: int) -> None:
    unit = 2.0**exponent  # exact: what rounding does is no law
    scaled = [
        pair_of(
            [unit * value for value in pair.a_values],
            [unit * value for value in pair.b_values],
            pair.a_middle_s,
            pair.b_middle_s,
        )
        for pair in pairs
    ]
    assert compare_paired(scaled) == compare_paired(pairs)
    before, after = (mean_of_launches([pair.a_values for pair in some]) for some in (pairs, scaled))
    assert after.value == unit * before.value
    assert after.low is None or after.low == unit * before.low


@given(st.data(), runs_of_pairs)
def test_the_order_of_the_launches_changes_nothing(
    data: st.DataObject, pairs: list[LaunchPair]
) -> None:
    assert compare_paired(data.draw(st.permutations(pairs))) == compare_paired(pairs)


@given(runs_of_pairs)
@settings(max_examples=200)
def test_the_interval_holds_the_point(pairs: list[LaunchPair]) -> None:
    a, b = [pair.a_values for pair in pairs], [pair.b_values for pair in pairs]
    for found in (compare_paired(pairs), compare_unpaired(a, b)):
        assert found.ratio.launches == len(pairs)
        assert found.ratio.trials == sum(map(len, (*a, *b)))
        if found.ratio.low is not None:
            assert found.ratio.low <= found.ratio.value <= found.ratio.high
            is_outside = found.ratio.low > 1 or found.ratio.high < 1
            assert is_outside == (found.p_value < 0.05) or abs(found.p_value - 0.05) < 1e-9
    figure = mean_of_launches(a)
    assert figure.low is None or figure.low <= figure.value <= figure.high
    assert (figure.low is None) == (len(pairs) == 1)


def correlated(rho: float, size: int, rng: np.random.Generator) -> np.ndarray:
    values = rng.standard_normal(size)
    for step in range(1, size):
        values[step] = rho * values[step - 1] + math.sqrt(1 - rho**2) * values[step]
    return values


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("size", [60, 200])
def test_noise_is_not_drift_but_drift_is(rho: float, size: int) -> None:
    rng = np.random.default_rng(17)
    still = [1 + 0.1 * correlated(rho, size, rng) for _ in range(300)]
    false_alarms = np.mean([is_drifting(series) for series in still])
    assert false_alarms <= (0.08 if rho == 0.9 else 0.02)  # measured: 4.4 % at 60 steps, ρ = 0.9
    stragglers = [np.where(rng.random(size) < 0.03, 10 * series, series) for series in still]
    assert np.mean([is_drifting(series) for series in stragglers]) <= (0.16 if rho == 0.9 else 0.03)
    if rho == 0.0:
        drifting = [series + np.linspace(0, 0.3, size) for series in still]
        assert np.mean([is_drifting(series) for series in drifting]) >= 0.9
        assert drift_ratio(drifting[0]) == pytest.approx(1.19, abs=0.08)


def test_too_little_to_speak_of_drift() -> None:
    assert drift_ratio(np.arange(1.0, 60.0)) is None
    assert drift_ratio(np.zeros(90)) is None
    assert not is_drifting(np.arange(1.0, 60.0))
    assert is_drifting(np.linspace(1, 1.1, 60))
    assert not is_drifting(np.linspace(1, 1.01, 600))  # beyond chance, but below 2 %
