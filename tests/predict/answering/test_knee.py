"""Is the rate found beyond which a faster network gains nothing?"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.predict.answering.break_even import by_batch, by_params, wider
from broadgauge.predict.answering.cost import usd_per_gigatoken
from broadgauge.predict.answering.knee import GAIN_RATIO, bandwidth_curve
from broadgauge.predict.case import Fabric, ModelShape, TrainingCase
from broadgauge.predict.facts.arrays import Times

MODEL = ModelShape(
    name="m", layers=24, hidden=2048, heads=16, vocabulary=50000, params=1.3e9, active_params=1.3e9
)
CASE = TrainingCase(
    model=MODEL,
    gpu="h100-sxm",
    nodes=2,
    data_parallel=2,
    fabric=Fabric(name="slow", transport="tcp", measured_node_gbyte_per_s=1.0),
    seq_len=1024,
    global_batch=16,
    micro_batch=8,
)


def step_times(cases: Sequence[TrainingCase]) -> Times:
    """Compute by tokens and parameters, then 4 bytes a parameter, nothing hidden."""
    times = []
    for case in cases:
        compute_s = 6 * case.model.params * case.micro_batch * case.seq_len / 400e12
        rate = (case.fabric.measured_node_gbyte_per_s or 0) * 1e9
        times.append(compute_s + 4 * MODEL.params / rate)
    return np.array(times)


def test_the_knee_is_where_the_form_says() -> None:
    """b/r = gain · c: compute c, bytes b."""
    compute_s, size_bytes = 6 * MODEL.params * 8 * 1024 / 400e12, 4 * MODEL.params
    larger = bandwidth_curve(replace(CASE, micro_batch=CASE.micro_batch * 64), step_times)
    assert larger.floor_s == pytest.approx(64 * compute_s)
    expected_gbps = size_bytes / (GAIN_RATIO * 64 * compute_s) * 8 / 1e9
    assert larger.knee_gbps == pytest.approx(expected_gbps, rel=0.01)
    # With so little compute the highest rate of the ladder still gains: there is no knee to name.
    assert bandwidth_curve(CASE, step_times).knee_gbps is None


def test_what_no_network_touches_is_indifferent() -> None:
    curve = bandwidth_curve(CASE, lambda cases: np.full(len(cases), 0.5))
    assert curve.is_indifferent
    assert curve.floor_s == 0.5


@settings(deadline=None)
@given(st.floats(0.01, 100), st.floats(0.001, 1000))
def test_a_step_at_the_knee_is_within_the_gain(compute_s: float, gigabit: float) -> None:
    def times(cases: Sequence[TrainingCase]) -> Times:
        rates = [8 * (case.fabric.measured_node_gbyte_per_s or 0) for case in cases]
        return compute_s + gigabit / np.array(rates)

    curve = bandwidth_curve(CASE, times)
    if curve.knee_gbps is None:
        return
    at_knee_s = compute_s + gigabit / curve.knee_gbps
    assert at_knee_s <= curve.floor_s * (1 + GAIN_RATIO) * (1 + 1e-6)
    if not curve.is_indifferent:
        assert at_knee_s == pytest.approx(curve.floor_s * (1 + GAIN_RATIO), rel=1e-6)


def test_from_which_batch_a_better_network_pays() -> None:
    """(c·f + b/r) / (c·f + b/R) = 1.1 with c the compute of the batch and f its factor."""
    better = Fabric(name="fast", transport="roce", measured_node_gbyte_per_s=10.0)
    found = by_batch(CASE, better, 0.1, step_times)
    slow_s, fast_s = 4 * MODEL.params / 1e9, 4 * MODEL.params / 1e10
    compute_s = 6 * MODEL.params * 8 * 1024 / 400e12
    factor = (slow_s - 1.1 * fast_s) / 0.1 / compute_s
    tokens = CASE.global_batch * CASE.seq_len / CASE.gpus
    if factor <= 64:
        assert found.at == pytest.approx(tokens * factor, rel=0.03)
    else:
        assert (found.at, found.is_always) == (None, True)


def test_a_threshold_of_parameters_is_found() -> None:
    """A step of c·N² + b·N: the network's share shrinks as the model grows."""

    def times(cases: Sequence[TrainingCase]) -> Times:
        rates = np.array([case.fabric.measured_node_gbyte_per_s or 0 for case in cases])
        params = np.array([case.model.params for case in cases]) / 1e9
        return params**2 + params / rates

    better = Fabric(name="fast", transport="roce", measured_node_gbyte_per_s=10.0)
    found = by_params(CASE, better, 0.1, times)
    # (n + 1) / (n + 0.1) = 1.1
    assert found.at == pytest.approx(8.9e9, rel=0.05)
    assert found.is_more_below
    assert by_params(CASE, CASE.fabric, 0.1, times).at is None


def test_a_wider_model_keeps_its_form() -> None:
    twice = wider(MODEL, 2.0)
    assert (twice.hidden, twice.heads) == (4096, 32)
    table = 50000 * 2048
    assert twice.params == pytest.approx((1.3e9 - table) * 4 + table * 2)
    assert wider(MODEL, 1.0).params == MODEL.params


def test_the_price_of_tokens() -> None:
    """8 GPUs at $2 for 10^9 tokens at 10^6 a second: 1,000 s are 0.278 h, so $4.44."""
    assert usd_per_gigatoken(1e6, 8, 2.0) == pytest.approx(8 * 2 * 1000 / 3600)
    assert usd_per_gigatoken(1e6, 8, None) is None
