"""Scores of predictions whose errors are planted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.making_tables import table_of

from broadgauge.predict.prediction import Interval
from broadgauge.predict.scoring.scoring import (
    Scored,
    mean_over_sources,
    quantile,
    scores,
    scores_by_source,
)


def scored(*rows: dict[str, str], predicted_s: list[float], spread: float = 1.1) -> list[Scored]:
    """These rows with these predictions."""
    return [
        Scored(row=row, step_time_s=Interval(value=each, low=each / spread, high=each * spread))
        for row, each in zip(table_of(*rows).rows, predicted_s, strict=True)
    ]


def row(name: str, step_time_s: float, **cells: str) -> dict[str, str]:
    return {"id": name, "step_time_s": str(step_time_s), **cells}


def test_errors_are_ratios_of_the_measured_time() -> None:
    rows = [row(f"r{i}", 10.0, seq_len=str(512 + i)) for i in range(4)]
    found = scores(scored(*rows, predicted_s=[11.0, 9.0, 10.0, 14.0]))
    assert found.n == 4
    assert found.mape == pytest.approx((0.1 + 0.1 + 0.0 + 0.4) / 4)
    assert found.median_ape == pytest.approx(0.1)
    assert found.p90_ape == pytest.approx(0.1 + 0.7 * 0.3)
    assert found.worst_ape == pytest.approx(0.4)
    assert found.bias == pytest.approx(0.1)
    assert found.interval_coverage == 0.5  # 11/1.1 holds 10 by a hair, 9·1.1 doesn't


def test_a_mean_over_sources_weighs_each_source_once() -> None:
    rows = [row(f"a{i}", 10.0, source="a") for i in range(9)] + [row("b", 10.0, source="b")]
    by_source = scores_by_source(scored(*rows, predicted_s=[10.0] * 9 + [20.0]))
    assert by_source["a"].mape == 0.0
    found = mean_over_sources(by_source)
    assert (found.n, found.mape) == (2, 0.5)
    assert found.pair_order is None


def test_nothing_scored_gives_no_figures() -> None:
    assert scores([]).mape is None
    assert mean_over_sources({}).n == 0


def test_the_faster_of_two_settings_is_named_by_its_time_a_token() -> None:
    slower_step_faster_token = [row("a", 1.0, global_batch="64"), row("b", 1.5, global_batch="128")]
    assert scores(scored(*slower_step_faster_token, predicted_s=[1.0, 1.6])).pair_order == 1.0
    assert scores(scored(*slower_step_faster_token, predicted_s=[1.0, 2.1])).pair_order == 0.0


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (row("b", 1.05, seq_len="2049"), "they differ by less than 10 %"),
        (row("b", 2.0), "it is the same setting twice"),
        (row("b", 2.0, seq_len="1024", model="other"), "another model"),
        (row("b", 2.0, seq_len="1024", source="other"), "another source"),
        (row("b", 2.0, nodes="4", data_parallel="32"), "another number of GPUs"),
    ],
)
def test_what_is_no_pair(other: dict[str, str], reason: str) -> None:
    assert scores(scored(row("a", 1.0), other, predicted_s=[1.0, 1.0])).pair_order is None, reason


def test_equal_predictions_name_nobody() -> None:
    rows = [row("a", 1.0), row("b", 2.0, micro_batch="2")]
    assert scores(scored(*rows, predicted_s=[1.0, 1.0])).pair_order == 0.0


def test_efficiency_is_over_the_fewest_nodes_of_a_series() -> None:
    weak = [
        row("one", 1.0, nodes="1", data_parallel="8", global_batch="32", transport="none"),
        row("two", 1.25, nodes="2", data_parallel="16", global_batch="64"),
        row("four", 2.0, nodes="4", data_parallel="32", global_batch="128"),
    ]
    found = scores(scored(*weak, predicted_s=[1.0, 1.0, 1.0]))
    assert found.scaling_efficiency_error == pytest.approx((0.2 + 0.5) / 2)
    assert scores(
        scored(*weak, predicted_s=[3.0, 3.75, 6.0])
    ).scaling_efficiency_error == pytest.approx(0)


def test_strong_scaling_and_networks_are_series_of_their_own() -> None:
    strong = [
        row("one", 4.0, nodes="1", data_parallel="8", global_batch="128", transport="none"),
        row("two", 2.5, nodes="2", data_parallel="16", global_batch="128"),
        row("tcp", 4.0, nodes="2", data_parallel="16", global_batch="128", transport="tcp"),
    ]
    found = scores(scored(*strong, predicted_s=[4.0, 2.0, 2.0]))
    assert found.scaling_efficiency_error == pytest.approx((0.2 + 0.5) / 2)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=8), st.floats(0.1, 10))
def test_scores_know_no_unit(predicted_s: list[float], unit: float) -> None:
    rows = [row(f"r{i}", 1.0 + i, seq_len=str(512 + i)) for i in range(len(predicted_s))]
    scaled = [each | {"step_time_s": repr(float(each["step_time_s"]) * unit)} for each in rows]
    one = scores(scored(*rows, predicted_s=predicted_s, spread=1.3))
    other = scores(scored(*scaled, predicted_s=[each * unit for each in predicted_s], spread=1.3))
    assert one.mape == pytest.approx(other.mape)
    assert one.worst_ape == pytest.approx(other.worst_ape)


def test_a_quantile_lies_between_order_statistics() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([7.0], 0.9) == 7.0


def test_repeats_of_a_setting_are_one() -> None:
    repeats = [row("a", 1.0), row("b", 4.0), row("c", 1.8, micro_batch="2")]
    # Alone, 1.0 is faster than 1.8 and 4.0 slower; their geometric mean, 2.0, is slower.
    assert scores(scored(*repeats, predicted_s=[3.0, 3.0, 1.0])).pair_order == 1.0
    assert scores(scored(*repeats, predicted_s=[1.0, 1.0, 3.0])).pair_order == 0.0
