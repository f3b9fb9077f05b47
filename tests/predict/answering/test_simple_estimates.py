"""The estimates that article net1-2025 makes by hand, to the digits that it prints."""

import pytest

from broadgauge.catalog.articles import articles
from broadgauge.predict.answering.simple_estimates import bytes_over_rate, rounded

PARAMS_BYTES = 708e6 * 2
NUM_STEPS = 1108
LARGE = {epoch.id: epoch for epoch in articles().epoch2_seconds}
IDEAL_S = rounded(LARGE["e-15-4-1"].seconds / 2, 2)
NOMINAL, MEASURED = articles().estimates_net1


def test_half_of_one_gpus_time_is_as_printed() -> None:
    assert IDEAL_S == 249.19


@pytest.mark.parametrize("path", ["nvlink3", "hdr"])
def test_bytes_over_the_nominal_rate(path: str) -> None:
    printed = getattr(NOMINAL, path)
    estimate = bytes_over_rate(
        compute_s=IDEAL_S,
        num_steps=NUM_STEPS,
        message_bytes=PARAMS_BYTES,
        rate_gbyte_per_s=printed.rate_gbyte_per_s,
        total_places=2,
    )
    assert rounded(estimate.communication_s, 2) == printed.comm_s
    assert rounded(estimate.total_s, 2) == printed.total_s
    assert estimate.compute_s + estimate.communication_s == estimate.total_s


@pytest.mark.parametrize("path", ["nvlink3", "hdr"])
def test_a_measured_all_reduce(path: str) -> None:
    printed = getattr(MEASURED, path)
    times = {each.path: each.seconds for each in articles().all_reduce if each.backend == "nccl"}
    communication_s = NUM_STEPS * times[path]
    assert rounded(communication_s, 2) == printed.comm_s
    assert rounded(IDEAL_S + communication_s, 2) == printed.total_s


def test_without_rounding_on_the_way_the_last_digit_is_another() -> None:
    unrounded = bytes_over_rate(
        compute_s=IDEAL_S, num_steps=NUM_STEPS, message_bytes=PARAMS_BYTES, rate_gbyte_per_s=25
    )
    assert rounded(unrounded.communication_s, 2) == 125.51
    assert NOMINAL.hdr.comm_s == 125.6


def test_the_arithmetic_has_the_figures_in_it() -> None:
    estimate = bytes_over_rate(
        compute_s=IDEAL_S, num_steps=NUM_STEPS, message_bytes=PARAMS_BYTES, rate_gbyte_per_s=25
    )
    assert estimate.arithmetic == (
        "1,108 steps × 2 × 1.416 GB / 25 GB/s = 125.51 s, after 249.19 s of compute"
    )


def test_half_goes_up() -> None:
    assert rounded(0.125, 2) == 0.13
    assert rounded(249.185, 2) == 249.19
