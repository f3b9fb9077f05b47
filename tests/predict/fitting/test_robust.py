"""The estimator against a linear problem that has an exact answer."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from broadgauge.predict.fitting.robust import Prior, Twins, by_differences, estimate

PRIOR = Prior(mean=np.zeros(2), sd=np.array([0.3, 0.5]), low=np.full(2, -2.0), high=np.full(2, 2.0))
SLOPES = np.array([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0], [0.9, 0.1]])


def test_it_finds_the_minimum_that_scipy_finds() -> None:
    measured = np.array([0.2, -0.1, -0.3, 1.5])
    scale, freedom = 0.1, 4.0

    def loss(x: np.ndarray) -> float:
        errors = SLOPES @ x - measured
        tails = (freedom + 1) / 2 * np.log1p(errors**2 / (freedom * scale**2))
        return float(np.sum(tails) + 0.5 * np.sum((x / PRIOR.sd) ** 2))

    found = estimate(
        by_differences(lambda x: SLOPES @ x - measured),
        PRIOR,
        scale=scale,
        freedom=freedom,
        iterations=200,
    )
    oracle = minimize(loss, found.mean, method="Nelder-Mead", options={"xatol": 1e-7})
    assert found.mean == pytest.approx(oracle.x, abs=1e-3)


def test_what_no_row_touches_keeps_its_prior() -> None:
    found = estimate(by_differences(lambda x: x[:1] - 0.2), PRIOR, scale=0.05, freedom=4.0)
    assert found.mean[1] == 0
    assert found.sd[1] == pytest.approx(0.5)
    assert found.sd[0] < 0.1


def test_bounds_hold() -> None:
    found = estimate(
        by_differences(lambda x: x - 9.0), PRIOR, scale=5.0, freedom=50.0, iterations=100
    )
    assert np.all(found.mean <= PRIOR.high)


def test_a_far_row_is_heard_before_it_is_called_an_outlier() -> None:
    """All rows say 1.2, far from the prior: they are right together."""
    wide = Prior(mean=np.zeros(1), sd=np.ones(1), low=np.full(1, -2.0), high=np.full(1, 2.0))
    linear = by_differences(lambda x: np.repeat(x, 3) - 1.2)
    found = estimate(linear, wide, scale=0.05, freedom=3.0, first_scale=0.6, iterations=20)
    assert found.mean[0] == pytest.approx(1.2, abs=0.02)


def test_rows_with_something_in_common_say_it_once() -> None:
    """Against generalised least squares, with errors far inside the tails."""
    measured = np.array([0.2, 0.22, -0.1, 0.05])
    common = np.array([[0.04, 0.04, 0, 0], [0.04, 0.04, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0.01]])
    scale, freedom = 0.1, 1e9
    found = estimate(
        by_differences(lambda x: SLOPES @ x - measured),
        PRIOR,
        scale=scale,
        freedom=freedom,
        iterations=50,
        shared=lambda slopes: common,
    )
    weights = np.linalg.inv(common + scale**2 * np.eye(4))
    normal = SLOPES.T @ weights @ SLOPES + np.diag(PRIOR.sd**-2)
    exact = np.linalg.solve(normal, SLOPES.T @ weights @ measured)
    assert found.mean == pytest.approx(exact, abs=1e-6)
    assert found.sd == pytest.approx(np.sqrt(np.diag(np.linalg.inv(normal))))
    assert found.left == pytest.approx(weights @ (SLOPES @ exact - measured), abs=1e-4)


TWINS = np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=4, max_size=4))
def test_who_has_no_twin_changes_nothing(measured: list[float]) -> None:
    linear = by_differences(lambda x: SLOPES @ x - np.array(measured))
    alone = estimate(linear, PRIOR, scale=0.1, freedom=4.0)
    told = estimate(linear, PRIOR, scale=0.1, freedom=4.0, twins=twins(np.eye(4)))
    assert told.mean == pytest.approx(alone.mean, abs=1e-9)
    assert told.left == pytest.approx(alone.left, abs=1e-6)


def test_twins_far_from_all_others_are_one_outlier() -> None:
    """Three rows say 0; two of one configuration say 1.5 of the same parameter, as one row does."""
    wide = Prior(mean=np.zeros(1), sd=np.ones(1), low=np.full(1, -2.0), high=np.full(1, 2.0))
    measured = np.array([1.5, 1.5, 0.0, 0.0])
    linear = by_differences(lambda x: np.repeat(x, 4) - measured)
    found = estimate(linear, wide, scale=0.1, freedom=4.0, iterations=50, twins=twins(TWINS))
    one = by_differences(lambda x: np.repeat(x, 3) - measured[1:])
    alone = estimate(one, wide, scale=0.1, freedom=4.0, iterations=50)
    assert found.mean == pytest.approx(alone.mean, abs=0.02)
    assert found.own_variance[0] == found.own_variance[1] > 0.1
    assert found.own_variance[2:].max() < 0.01


def test_one_disturbed_twin_says_nothing_of_the_other() -> None:
    """Three configurations twice, all as predicted but one row, three times as long."""
    pairs = np.kron(np.eye(3), np.ones((2, 2)))
    measured = np.array([0.0, 0.0, 0.0, math.log(3), 0.0, 0.0])
    linear = by_differences(lambda x: np.repeat(x, 6) - measured)
    wide = Prior(mean=np.zeros(1), sd=np.ones(1), low=np.full(1, -2.0), high=np.full(1, 2.0))
    found = estimate(linear, wide, scale=0.06, freedom=4.0, iterations=50, twins=twins(pairs))
    assert found.own_variance.max() == 0
    assert found.mean[0] == pytest.approx(0, abs=0.02)


def test_what_is_no_matter_of_kernels_is_not_their_configurations() -> None:
    linear = by_differences(lambda x: np.repeat(x, 4) - np.array([1.5, 1.5, 0.0, 0.0]))
    wide = Prior(mean=np.zeros(1), sd=np.ones(1), low=np.full(1, -2.0), high=np.full(1, 2.0))
    alone = estimate(linear, wide, scale=0.1, freedom=4.0, iterations=50)
    none = Twins(same=TWINS, shares=lambda slopes: np.zeros(len(slopes)))
    told = estimate(linear, wide, scale=0.1, freedom=4.0, iterations=50, twins=none)
    assert told.mean == pytest.approx(alone.mean, abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-0.05, 0.05), min_size=4, max_size=4),
    st.floats(-0.1, 0.0),
)
def test_a_bound_gives_the_bounded_optimum(measured: list[float], high: float) -> None:
    """With errors that are nearly normal the optimum is a bounded least-squares fit."""
    slopes = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    target = np.array(measured) + np.array([0.0, 0.0, 0.2, 0.2])
    prior = Prior(
        mean=np.zeros(2), sd=np.ones(2), low=np.array([-2.0, -2.0]), high=np.array([2.0, high])
    )
    linear = by_differences(lambda x: slopes @ x - target)
    found = estimate(linear, prior, scale=1.0, freedom=1e9, iterations=50)
    rows = np.vstack([slopes, np.eye(2)])
    wanted = lsq_linear(rows, np.append(target, [0.0, 0.0]), bounds=(prior.low, prior.high))
    assert found.mean == pytest.approx(wanted.x, abs=1e-4)


def twins(same: np.ndarray) -> Twins:
    """All of a row's error is its configuration's."""
    return Twins(same=same, shares=lambda slopes: np.ones(len(slopes)))
