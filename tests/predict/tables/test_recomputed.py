"""Rows that were measured fitted: what would not have is recomputed, and no more of it."""

from dataclasses import replace

import pytest
from tests.predict.making_cases import case
from tests.predict.making_tables import table_of

from broadgauge.predict.case import ModelShape, TrainingCase
from broadgauge.predict.prediction import Interval
from broadgauge.predict.predictor import predict
from broadgauge.predict.scoring.scoring import Scored, scores
from broadgauge.predict.tables.recomputed import as_they_ran
from broadgauge.predict.tables.table import StepRow

MODEL = ModelShape(
    name="7B", layers=32, hidden=4096, heads=32, vocabulary=32000, params=6.7e9, active_params=6.7e9
)


def sharded(micro_batch: float, **changes: object) -> TrainingCase:
    return case(strategy="fsdp", micro_batch=micro_batch, global_batch=16 * micro_batch, **changes)


def scaling_error(steps: list[tuple[TrainingCase, float]]) -> float | None:
    scored = [
        Scored(
            row=StepRow(line=line, id="", source="", flags=(), case=each, step_time_s=step_s),
            step_time_s=Interval(value=step_s, low=step_s, high=step_s),
        )
        for line, (each, step_s) in enumerate(steps)
    ]
    return scores(scored).scaling_efficiency_error


def used(each: TrainingCase) -> float:
    [answer] = predict([each])
    memory = answer.memory
    return memory.total_bytes / memory.capacity_bytes


def test_what_fits_is_left_as_it_is_stated() -> None:
    small = sharded(1)

    assert used(small) < 1
    assert as_they_ran([small]) == [small]


@pytest.mark.parametrize("recompute", ["none", "selective"])
def test_as_many_layers_are_recomputed_as_make_it_fit(recompute: str) -> None:
    large = sharded(1, model=MODEL, recompute=recompute)
    while used(large) < 1:
        large = replace(
            large, micro_batch=2 * large.micro_batch, global_batch=2 * large.global_batch
        )

    [ran] = as_they_ran([large])

    assert 0 < ran.recomputed_ratio < 1
    layers = ran.recomputed_ratio * MODEL.layers
    assert layers == pytest.approx(round(layers))
    one_less = replace(ran, recomputed_ratio=(layers - 1) / MODEL.layers)
    assert used(ran) <= 1 < used(one_less)
    stated, partly, whole = predict([large, ran, replace(large, recompute="full")])
    assert stated.step_time_s.value < partly.step_time_s.value < whole.step_time_s.value


def test_what_nothing_helps_is_left_as_it_is_stated() -> None:
    """And what a host's memory holds is not known."""
    hopeless = sharded(2**14, model=MODEL)
    moved = sharded(16, model=MODEL, cpu_offload=True)

    assert used(replace(hopeless, recompute="full")) > 1
    assert as_they_ran([hopeless, moved]) == [hopeless, moved]


def test_all_layers_recomputed_is_full_recomputation() -> None:
    each = case()
    one, other = predict([replace(each, recomputed_ratio=1.0), replace(each, recompute="full")])

    assert one.step_time_s == other.step_time_s
    assert one.memory == other.memory


def test_rows_of_a_table_are_read_as_they_ran() -> None:
    fits: dict[str, str] = {}
    large = {"vocabulary": "1024", "micro_batch": "64", "global_batch": "1024"}
    table = table_of(fits, large)
    first, second = table.rows

    told = "line 3: taken with the layers recomputed that make them fit into their GPUs"
    assert told in table.notes
    assert first.case.recomputed_ratio == 0
    assert 0 < second.case.recomputed_ratio < 1


def test_nodes_that_need_less_of_it_are_of_the_same_series() -> None:
    """More nodes hold smaller shards: what they recompute differs, what was run does not."""
    one = sharded(8, nodes=1, data_parallel=8, recomputed_ratio=0.7)
    two = sharded(8, nodes=2, data_parallel=16, recomputed_ratio=0.6)
    one = replace(one, global_batch=64.0)

    assert scaling_error([(one, 1.0), (two, 1.0)]) is not None
