"""Student's t against scipy, over every number of degrees of freedom that launches can give."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from broadgauge.results.student import student_cdf, student_quantile, student_two_sided_p

# Whole numbers from launches, fractions from Welch, the extremes of both.
DOFS = [float(dof) for dof in range(1, 201)] + [0.7, 1.03, 1.5, 2.71, 7.3, 33.3, 150.01, 199.9]


@pytest.mark.parametrize("t", [-1e6, -300.0, -40.0, -5.0, -1.96, -0.3, -1e-6, 0.0, 0.8, 2.5, 9.0])
def test_cdf_is_scipys(t: float) -> None:
    ours = [student_cdf(t, dof) for dof in DOFS]
    np.testing.assert_allclose(ours, stats.t.cdf(t, DOFS), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    "probability", [1e-12, 1e-6, 0.001, 0.025, 0.2, 0.26, 0.49, 0.51, 0.75, 0.8, 0.975, 0.9995]
)
def test_quantile_is_scipys(probability: float) -> None:
    ours = [student_quantile(probability, dof) for dof in DOFS]
    np.testing.assert_allclose(ours, stats.t.ppf(probability, DOFS), rtol=1e-9)


@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.3, 0.4999, 0.499999, 0.6, 0.9])
def test_quantile_is_the_closed_form(probability: float) -> None:
    """Near the median scipy loses digits (1.6e-9 at dof 4, p = 0.4999): there, the formulas judge.

    Source: Shaw, "Sampling Student's t distribution", J. Comp. Finance 9(4), 2006: dof 1, 2, 4.
    """
    centre = probability - 0.5
    cauchy = -1 / math.tan(math.pi * probability)
    assert student_quantile(probability, 1) == pytest.approx(cauchy, rel=1e-9)
    two = 2 * centre * math.sqrt(2 / (4 * probability * (1 - probability)))
    assert student_quantile(probability, 2) == pytest.approx(two, rel=1e-9)
    t = student_quantile(probability, 4)
    share = t / math.sqrt(4 + t * t)
    assert 0.75 * share * (1 - share * share / 3) == pytest.approx(centre, rel=1e-9)


def test_the_factors_everyone_knows() -> None:
    assert student_quantile(0.975, 1) == pytest.approx(12.706, abs=5e-4)
    assert student_quantile(0.975, 4) == pytest.approx(2.776, abs=5e-4)
    assert student_quantile(0.975, 1e6) == pytest.approx(1.959966, abs=1e-6)
    assert student_quantile(0.5, 3) == 0.0


@given(
    probability=st.floats(1e-9, 1 - 1e-9),
    dof=st.floats(0.8, 300),
)
def test_quantile_undoes_cdf(probability: float, dof: float) -> None:
    assert student_cdf(student_quantile(probability, dof), dof) == pytest.approx(
        probability, rel=1e-9
    )


@given(t=st.floats(-1e3, 1e3), dof=st.floats(0.8, 300))
def test_both_tails_are_alike(t: float, dof: float) -> None:
    assert student_cdf(t, dof) + student_cdf(-t, dof) == pytest.approx(1.0, abs=1e-12)
    assert student_two_sided_p(t, dof) == pytest.approx(2 * student_cdf(-abs(t), dof), rel=1e-12)


@pytest.mark.parametrize("dof", [0.0, -1.0, math.nan, math.inf])
def test_impossible_degrees_of_freedom_are_refused(dof: float) -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_cdf(1.0, dof)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, math.nan])
def test_impossible_probabilities_are_refused(probability: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        student_quantile(probability, 5)
