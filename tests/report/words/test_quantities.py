"""Is every figure printed with its unit and its spread?"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.report.words.quantities import (
    column_like,
    interval,
    show,
    show_estimate,
    smallest_change,
    spread,
    title_of,
)
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.workloads.metrics import REGISTRY, unit_of


def an_estimate(value: float, low: float | None, high: float | None, launches: int = 5) -> Estimate:
    return Estimate(
        value=value, low=low, high=high, launches=launches, trials=launches, method="made up"
    )


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("step_time_s", 0.0123, "12.3 ms"),
        ("busbw_gbyte_per_s", 0.0232, "23.2 MB/s"),
        ("link_rate_gbps", 0.194, "194 Mbit/s"),
        ("network_share_ratio", 0.774, "77.4 %"),
        ("tokens_per_s", 2543.0, "2,543 /s"),
        ("cpu_s_per_gbyte", 2.2, "2.2 s/GB"),
        ("amplification_ratio", 2.09, "2.09×"),
        ("wire_bytes", 70_170_000.0, "70.2 MB"),
        ("power_watts", 512.3, "512 W"),
        ("loss", 2.353, "2.35"),
    ],
)
def test_a_unit_stands_behind_every_figure(name: str, value: float, text: str) -> None:
    assert show(name, value) == text


def test_every_registered_metric_can_be_shown() -> None:
    for name in REGISTRY:
        assert unit_of(name) is not None
        assert show(name, 1.5)
        assert title_of(name)


def test_the_spread_is_relative_but_for_shares_and_near_zero() -> None:
    assert spread("step_time_s", an_estimate(1.0, 0.98, 1.02)) == "± 2 %"
    assert spread("network_share_ratio", an_estimate(0.8, 0.77, 0.83)) == "77–83 %"
    assert spread("network_share_ratio", an_estimate(0.1, 0.0998, 0.1002)) == "9.98–10 %"
    assert spread("network_cost_s", an_estimate(0.0001, -0.001, 0.0012)) == "± 1.1 ms"


def test_one_launch_has_no_interval_and_says_so() -> None:
    alone = an_estimate(1.0, None, None, launches=1)
    assert show_estimate("step_time_s", alone) == "1 s (1 launch)"
    assert interval("step_time_s", alone) == "–"


@pytest.mark.parametrize(
    ("ratio", "words"), [(5.4e-13, "less than 0.01 %"), (0.0, "less than 0.01 %"), (0.22, "22 %")]
)
def test_what_hardly_scatters_shows_less_than_a_ten_thousandth(ratio: float, words: str) -> None:
    assert smallest_change(ratio) == words


def test_an_interval_has_the_unit_of_its_figure() -> None:
    slow = an_estimate(91.7, 48.29, 135.1)
    assert interval("cpu_s_per_gbyte", slow) == "48.29 s/GB to 135.1 s/GB"
    wide = an_estimate(1.11, 0.3701, 1.849)
    assert interval("busbw_gbyte_per_s", wide) == "0.3701 GB/s to 1.849 GB/s"
    assert interval("network_cost_s", an_estimate(0.0, -0.001, 0.001)) == "-1 ms to 1 ms"


@pytest.mark.parametrize(
    ("name", "values", "shown"),
    [
        ("busbw_gbyte_per_s", (0.0234, 0.116, 1.474), ["23.4 MB/s", "116 MB/s", "1,470 MB/s"]),
        ("step_time_s", (90.0, 150.0), ["90 s", "150 s"]),
        ("time_s", (0.0003, 0.36), ["0.3 ms", "360 ms"]),
        ("tokens_per_s", (9800.0, 12_345.0), ["9.8 k /s", "12.3 k /s"]),
        ("loss", (0.5, 2.0), ["0.5", "2"]),
        ("step_time_s", (0.0119, 250.0), ["0.0119 s", "250 s"]),  # ms, min: no value's is good
        ("busbw_gbyte_per_s", (0.01, 1474.0), ["0.01 GB/s", "1,470 GB/s"]),
        ("tokens_per_s", (900.0, 2e6), ["0.9 k /s", "2,000 k /s"]),
        ("step_time_s", (0.0005, 200.0), ["500 µs", "3.33 min"]),
        ("step_time_s", (0.5, math.inf), ["500 ms", "unknown"]),
        ("step_time_s", (0.5, 150.0, math.nan), ["0.5 s", "150 s", "unknown"]),
        ("tokens_per_s", (0.5, 2.0, math.inf), ["0.5 /s", "2 /s", "unknown /s"]),
    ],
)
def test_a_column_has_one_unit_and_no_long_numbers(
    name: str, values: tuple[float, ...], shown: list[str]
) -> None:
    like = column_like(name, values)
    assert [show(name, value, like=like) for value in values] == shown


@given(
    st.sampled_from(["step_time_s", "busbw_gbyte_per_s", "tokens_per_s", "loss", "mfu_ratio"]),
    st.lists(st.floats(0, 1e15), max_size=8),
)
def test_of_a_column_in_one_unit_every_number_is_short(name: str, values: list[float]) -> None:
    like = column_like(name, [*values, math.inf, math.nan])
    if like is not None:
        numbers = [show(name, value, like=like).split()[0] for value in values if value]
        assert all(0.01 <= float(number.replace(",", "")) < 10_000 for number in numbers)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("name", ["step_time_s", "tokens_per_s", "mfu_ratio", "link_rate_gbps"])
def test_what_is_no_number_is_unknown(name: str, value: float) -> None:
    assert show(name, value).startswith("unknown")
