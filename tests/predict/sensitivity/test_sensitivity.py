"""Proves predict/sensitivity/: what is planted is found, and no more than that."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import nnls
from tests.costly import costly
from tests.predict.sensitivity.simulated_ladders import COMPUTE_S, TRUTHS, rates, simulated

from broadgauge.predict.sensitivity.curve import Form, LadderCurve, fit_curve, misfit
from broadgauge.predict.sensitivity.ladder import Lack, LadderAnswer, Rung, Sensitivity
from broadgauge.predict.sensitivity.sensitivity import analyse
from broadgauge.specs.estimate import Estimate

RATES_GBPS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
SHARE = 0.957


def rungs_of(step_s: Callable[[float], float], num_blocks: int = 1) -> list[Rung]:
    """Without any scatter; `step_s` takes the seconds of a gigabyte."""
    return [
        Rung(
            rate_gbps=rate,
            payload_gbps=rate * SHARE,
            step_s_by_block={block: step_s(8 / (rate * SHARE)) for block in range(num_blocks)},
        )
        for rate in RATES_GBPS
    ]


def value(answer: LadderAnswer) -> float:
    assert answer.estimate is not None, answer.why
    return answer.estimate.value


def estimates(found: Sensitivity) -> list[Estimate]:
    answers = (found.critical_bytes, found.fast_bytes, found.base_s, found.enough_gbps)
    known = [answer.estimate for answer in (*answers, found.knee_gbps)]
    known.append(found.curve_base_s)
    return [each for each in known if each is not None] + [rung.step_s for rung in found.rungs]


times = st.lists(st.lists(st.floats(1e-4, 1e3), min_size=3, max_size=3), min_size=3, max_size=6)


def ladder_of(rows: list[list[float]]) -> list[Rung]:
    """One rung a row, each twice as fast as the one before."""
    return [
        Rung(
            rate_gbps=0.1 * 2.0**place,
            payload_gbps=0.1 * 2.0**place * SHARE,
            step_s_by_block=dict(enumerate(row)),
        )
        for place, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("form", "step_s", "base_s", "slow_bytes", "fast_bytes"),
    [
        (Form.LINE, lambda x: 0.03 + 1e-3 * x, 0.03, 1e6, 1e6),
        (Form.LINE, lambda x: 1e-3 * x, 0.0, 1e6, 1e6),
        (Form.HINGE, lambda x: max(0.03, 0.002 + 1e-3 * x), 0.03, 1e6, 0),
        (Form.TWO_SLOPES, lambda x: max(0.03 + 2e-4 * x, 0.01 + 1e-3 * x), 0.03, 1e6, 2e5),
    ],
)
def test_what_is_planted_is_found_to_the_digit(
    form: Form,
    step_s: Callable[[float], float],
    base_s: float,
    slow_bytes: float,
    fast_bytes: float,
) -> None:
    found = analyse(rungs_of(step_s, num_blocks=3))
    assert found.curve.form is form
    assert found.curve.base_s == pytest.approx(base_s, rel=1e-6, abs=1e-9)
    assert found.curve.slow_bytes == pytest.approx(slow_bytes, rel=1e-6)
    assert found.curve.fast_bytes == pytest.approx(fast_bytes, rel=1e-6)
    for rung in found.rungs:
        assert rung.off_ratio == pytest.approx(0, abs=1e-6)


def test_the_rate_that_is_enough_is_where_the_step_is_so_near() -> None:
    """Of exact times: what the curve gives is stated."""
    hinge = analyse(rungs_of(lambda x: max(0.03, 0.002 + 1e-3 * x)), is_exact=True)
    # 0.002 + 1e-3 x = 1.02 x 0.03: x = 28.6 s a gigabyte of payload.
    assert value(hinge.enough_gbps) == pytest.approx(8 / 28.6 / SHARE, rel=1e-6)
    assert value(hinge.knee_gbps) == pytest.approx(8 / 28.0 / SHARE, rel=1e-6)
    line = analyse(rungs_of(lambda x: 0.03 + 1e-3 * x), gain_ratio=0.1, is_exact=True)
    assert value(line.enough_gbps) == pytest.approx(8 / 3.0 / SHARE, rel=1e-6)
    assert line.is_extrapolated
    assert not hinge.is_extrapolated


def test_a_flat_ladder_tells_no_bytes_and_a_slope_tells_no_knee() -> None:
    flat = analyse(simulated("flat", seed=1))
    assert flat.critical_bytes.estimate is None
    assert flat.enough_gbps.estimate is None
    assert flat.critical_bytes.at_most is not None
    # What that many bytes would add at the slowest rate is within the scatter.
    slowest_s_per_byte = 8e-9 / (min(RATES_GBPS) * SHARE)
    assert 0 < flat.critical_bytes.at_most * slowest_s_per_byte < 0.1 * COMPUTE_S
    assert value(flat.base_s) == pytest.approx(COMPUTE_S, rel=0.05)
    line = analyse(simulated("line", seed=1))
    assert line.knee_gbps.estimate is None
    assert line.base_s.at_most is not None
    assert line.base_s.at_most > line.curve_base_s.value
    nothing_but_bytes = analyse(rungs_of(lambda x: 1e-3 * x, num_blocks=3))
    assert nothing_but_bytes.enough_gbps.estimate is None
    assert nothing_but_bytes.enough_gbps.at_least == max(RATES_GBPS)


@pytest.mark.parametrize(("spread", "is_enough"), [(0.001, True), (0.1, False)])
def test_the_slowest_rate_is_enough_only_where_launches_agree(
    spread: float, is_enough: bool
) -> None:
    flat = analyse(simulated("flat", seed=1, spread=spread))
    assert flat.enough_gbps.estimate is None
    assert (flat.enough_gbps.lack is None) is is_enough
    if is_enough:
        assert flat.enough_gbps.at_most == min(RATES_GBPS)


def test_a_flat_part_of_one_rung_is_no_floor() -> None:
    """Was it the knee, or the next piece of the same curve?"""
    found = analyse(rungs_of(lambda x: max(0.03, 0.02 + 1.2e-3 * x), num_blocks=3))
    assert found.curve.form is Form.HINGE
    assert found.base_s.estimate is None
    assert found.base_s.at_least is not None
    assert found.base_s.at_least < 0.029
    assert found.base_s.at_most == pytest.approx(0.03, rel=0.02)
    assert found.enough_gbps.estimate is None


@pytest.mark.parametrize(("truth", "spread"), [("line", 0.2), ("hinge", 0.2), ("line", 0.4)])
def test_a_rate_that_may_be_a_tenth_of_itself_is_unknown(truth: str, spread: float) -> None:
    rungs = simulated(truth, seed=1, num_blocks=3, spread=spread, has_unshaped=True)
    enough = analyse(rungs).enough_gbps
    assert enough.estimate is None
    assert enough.at_least is not None
    assert enough.at_most is None or enough.at_most > 10 * enough.at_least
    assert enough.lack is Lack.FASTER_RATES


@given(truth=st.sampled_from([*TRUTHS]), seed=st.integers(0, 10_000), spread=st.floats(0.001, 0.5))
@costly(25)
def test_no_rate_is_told_with_a_huge_interval(truth: str, seed: int, spread: float) -> None:
    found = analyse(simulated(truth, seed=seed, num_blocks=3, spread=spread))
    for estimate in (found.enough_gbps.estimate, found.knee_gbps.estimate):
        if estimate is not None and estimate.low is not None:
            assert estimate.low <= estimate.value
            assert (estimate.high or estimate.value) <= 10 * estimate.low


@pytest.mark.parametrize("num_blocks", [1, 2])
def test_too_few_launches_give_no_interval(num_blocks: int) -> None:
    found = analyse(simulated("line", seed=2, num_blocks=num_blocks))
    for estimate in estimates(found):
        assert estimate.low is None
        assert estimate.high is None
        assert estimate.launches == num_blocks


@pytest.mark.parametrize("name", ["line", "hinge", "two slopes"])
@pytest.mark.parametrize("seed", range(3))
def test_compute_and_bytes_are_recovered_within_5_percent(name: str, seed: int) -> None:
    found = analyse(simulated(name, seed=seed, has_unshaped=True))
    assert value(found.base_s) == pytest.approx(COMPUTE_S, rel=0.05)
    assert value(found.critical_bytes) == pytest.approx(TRUTHS[name].slow_bytes, rel=0.05)


def test_a_launch_that_was_disturbed_moves_little() -> None:
    rungs = simulated("hinge", seed=3)
    disturbed = list(rungs)
    by_block = dict(rungs[4].step_s_by_block) | {1: rungs[4].step_s_by_block[1] * 1.6}
    disturbed[4] = Rung(
        rate_gbps=rungs[4].rate_gbps,
        payload_gbps=rungs[4].payload_gbps,
        step_s_by_block=by_block,
    )
    before, after = analyse(rungs), analyse(disturbed)
    assert after.curve.base_s == pytest.approx(before.curve.base_s, rel=0.01)
    assert value(after.critical_bytes) == pytest.approx(value(before.critical_bytes), rel=0.01)


def test_a_block_that_lacks_rungs_counts_where_it_has_them() -> None:
    rungs = simulated("line", seed=4, block_spread=0.1)
    lacking = [
        Rung(
            rate_gbps=rung.rate_gbps,
            payload_gbps=rung.payload_gbps,
            step_s_by_block={
                block: step_s
                for block, step_s in rung.step_s_by_block.items()
                if (place, block) not in ((0, 0), (5, 1))
            },
        )
        for place, rung in enumerate(rungs)
    ]
    # Blocks differ by 10 %: were they not told apart, the two rungs would be off by 2 %.
    assert max(abs(rung.off_ratio) for rung in analyse(lacking).rungs) < 0.015


@given(rows=times)
@costly(20)
def test_whatever_is_measured_a_slower_link_is_never_faster(rows: list[list[float]]) -> None:
    found = analyse(ladder_of(rows))
    assert 0 <= found.curve.fast_bytes <= found.curve.slow_bytes
    fitted = [rung.fitted_s for rung in found.rungs]
    assert fitted == sorted(fitted, reverse=True)
    assert found.curve.base_s <= fitted[-1] * (1 + 1e-12)


@given(rows=times)
@costly(20)
def test_each_interval_holds_its_figure(rows: list[list[float]]) -> None:
    found = analyse(ladder_of(rows))
    for estimate in estimates(found):
        assert estimate.low is not None
        assert estimate.low <= estimate.value
        assert estimate.high is None or estimate.value <= estimate.high


@given(rows=times, order=st.permutations(range(6)), blocks=st.permutations((5, 7, 11)))
@costly(12)
def test_the_order_of_rungs_and_names_of_blocks_change_nothing(
    rows: list[list[float]], order: list[int], blocks: list[int]
) -> None:
    rungs = ladder_of(rows)
    shuffled = [rungs[place] for place in order if place < len(rungs)]
    assert analyse(shuffled) == analyse(rungs)
    renamed = [
        Rung(
            rate_gbps=rung.rate_gbps,
            payload_gbps=rung.payload_gbps,
            step_s_by_block={sorted(blocks)[b]: s for b, s in rung.step_s_by_block.items()},
        )
        for rung in rungs
    ]
    assert analyse(renamed) == analyse(rungs)


@given(seed=st.integers(0, 10_000), power=st.integers(-8, 8), name=st.sampled_from([*TRUTHS]))
@costly(15)
def test_units_scale(seed: int, power: int, name: str) -> None:
    """Slower clocks make compute and bytes larger alike; a faster network more bytes and rates."""
    rungs, factor = simulated(name, seed=seed, num_blocks=3), 2.0**power
    plain = analyse(rungs)
    slower = analyse(
        [
            Rung(
                rate_gbps=rung.rate_gbps,
                payload_gbps=rung.payload_gbps,
                step_s_by_block={b: s * factor for b, s in rung.step_s_by_block.items()},
            )
            for rung in rungs
        ]
    )
    faster = analyse(
        [
            Rung(
                rate_gbps=rung.rate_gbps * factor,
                payload_gbps=rung.payload_gbps * factor,
                step_s_by_block=rung.step_s_by_block,
            )
            for rung in rungs
        ]
    )
    assert slower.curve.form is faster.curve.form is plain.curve.form
    for scaled, of_time, of_rate in (
        (slower, factor, 1.0),
        (faster, 1.0, factor),
    ):
        assert scaled.curve.base_s == pytest.approx(plain.curve.base_s * of_time, rel=1e-6)
        bytes_factor = of_time * of_rate
        expected = plain.curve.slow_bytes * bytes_factor
        assert scaled.curve.slow_bytes == pytest.approx(expected, rel=1e-6)
        is_known = plain.enough_gbps.estimate is not None
        if is_known and scaled.enough_gbps.estimate is not None:
            expected = plain.enough_gbps.estimate.value * of_rate
            assert value(scaled.enough_gbps) == pytest.approx(expected, rel=1e-5)


def reference_fit(form: Form, x: np.ndarray, step_s: np.ndarray, errors: np.ndarray) -> float:
    """The least misfit, plainly: every knee of a fine grid, and scipy's non-negative fit."""
    knees = np.linspace(x[0 if form is Form.HINGE else 1], x[-2], 1001)
    least = math.inf
    for knee in knees if form in (Form.HINGE, Form.TWO_SLOPES) else (0.0,):
        beyond = np.maximum(x - knee, 0)
        columns = {
            Form.FLAT: [np.ones_like(x)],
            Form.LINE: [np.ones_like(x), x],
            Form.HINGE: [np.ones_like(x), beyond],
            Form.TWO_SLOPES: [np.ones_like(x), x, beyond],
        }[form]
        left = nnls(np.stack(columns, axis=1) / errors[:, None], step_s / errors)[1]
        least = min(least, left**2)
    return least


@given(
    steps=st.lists(st.floats(0.5, 2.0), min_size=5, max_size=8), form=st.sampled_from(list(Form))
)
@costly(8)
def test_no_curve_of_the_form_is_nearer(steps: list[float], form: Form) -> None:
    x = np.array([5.0 * 1.7**place for place in range(len(steps))])
    step_s = np.array(steps) * np.maximum(0.03, 0.01 + 1e-3 * x)
    error_ratio = np.full(len(x), 0.01)
    curve = fit_curve(form, x, step_s, error_ratio)
    ours = misfit(curve, x, step_s, error_ratio)
    assert ours <= reference_fit(form, x, step_s, step_s * error_ratio) * (1 + 1e-6) + 1e-9


@given(
    base_s=st.floats(1e-4, 10), fast=st.floats(0, 1e9), more=st.floats(1.0, 1e9),
    knee=st.floats(0.1, 100), ratio=st.floats(1.001, 100),
)  # fmt: skip
def test_reaching_a_time_is_the_inverse_of_the_curve(
    base_s: float, fast: float, more: float, knee: float, ratio: float
) -> None:
    assume(fast == 0 or fast > 1.0)
    curve = LadderCurve(
        form=Form.TWO_SLOPES,
        base_s=base_s,
        fast_bytes=fast,
        slow_bytes=fast + more,
        knee_s_per_gbyte=knee,
    )
    reached = curve.reaches(ratio * base_s)
    assert curve.step_s(reached) == pytest.approx(ratio * base_s, rel=1e-6)


def test_what_is_no_ladder_is_refused() -> None:
    rungs = simulated("line", seed=5)
    with pytest.raises(ValueError, match="3 different rates"):
        analyse(rungs[:2])
    with pytest.raises(ValueError, match="3 different rates"):
        analyse([*rungs, rungs[0]])
    bad = Rung(rate_gbps=9.0, payload_gbps=8.0, step_s_by_block={0: 0.0})
    with pytest.raises(ValueError, match="positive"):
        analyse([*rungs, bad])


@pytest.mark.parametrize("name", ["line", "hinge", "two slopes"])
def test_95_of_100_intervals_hold_the_truth(name: str) -> None:
    """Of 25 ladders 21 at least: with fewer, 95 % would be a false claim at 99 % confidence."""
    found = rates(name, 25, 5)
    assert min(found.held.values()) >= 0.84, found
    assert max(found.off_p90.values()) < 0.05, found
    assert found.right_form > 0.9, found
