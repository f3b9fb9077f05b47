"""The estimator against a linear problem that has an exact answer."""

import numpy as np
import pytest
from scipy.optimize import minimize

from broadgauge.predict.fitting.robust import Prior, by_differences, estimate

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
