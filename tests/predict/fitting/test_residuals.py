"""Quantiles of what predictions miss: a source counts as a source, however many rows it has."""

import numpy as np
import pytest

from broadgauge.predict.fitting.residuals import HeldOut, residual_table


def left_out(source: str, logs: np.ndarray) -> HeldOut:
    return HeldOut(
        source=source,
        log_ratios=logs,
        regimes=np.full(len(logs), "compute"),
        families=np.full(len(logs), "plain"),
    )


def test_residuals_of_one_source_are_its_quantiles() -> None:
    logs = np.linspace(-1, 1, 2001)
    low, high = residual_table([left_out("a", logs)])["all"]
    assert (low, high) == (pytest.approx(-0.8, abs=0.01), pytest.approx(0.8, abs=0.01))


def test_a_source_with_a_hundred_times_the_rows_counts_as_ten() -> None:
    many, few = np.zeros(900), np.full(9, 0.5)
    low, high = residual_table([left_out("many", many), left_out("few", few)])["compute"]
    assert (low, high) == (0, 0)
    few_more = np.full(36, 0.5)
    _, high = residual_table([left_out("many", many), left_out("few", few_more)])["compute"]
    assert high == pytest.approx(0.5)


def test_a_class_of_one_source_has_no_residuals_of_its_own() -> None:
    assert set(residual_table([left_out("a", np.zeros(50))])) == {"all"}
