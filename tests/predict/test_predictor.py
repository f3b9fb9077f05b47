"""What must hold of every predicted step, whatever the constants?"""

import time
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counted_calls import counted_calls
from tests.predict.making_cases import BASE, case, cases

from broadgauge.predict.articles.scores import article_rows
from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.case import Bottleneck, Fabric, ModelShape, TrainingCase
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import default_knowledge
from broadgauge.predict.prediction import Prediction, StepParts
from broadgauge.predict.predictor import predict, predict_table
from broadgauge.predict.timeline.evaluation import evaluate, work_of

ROUNDING = 1e-9


def step_s(each: TrainingCase) -> float:
    return predict([each])[0].step_time_s.value


def sum_of(parts: StepParts) -> float:
    return float(sum(getattr(parts, field.name) for field in fields(parts)))


@given(each=cases())
@settings(max_examples=20, deadline=None)
def test_parts_add_up_and_the_interval_contains_the_point(each: TrainingCase) -> None:
    (found,) = predict([each])
    value = found.step_time_s.value

    assert sum_of(found.parts) == pytest.approx(value, rel=ROUNDING)
    assert min(getattr(found.parts, field.name) for field in fields(found.parts)) > -1e-9 * value
    assert found.step_time_s.low < value < found.step_time_s.high
    assert found.overlapped_communication_s >= 0


@given(each=cases(), more=st.floats(1.0, 20.0))
@settings(max_examples=12, deadline=None)
def test_a_faster_network_is_never_slower(each: TrainingCase, more: float) -> None:
    gbps = each.fabric.node_gbps or 100.0
    slow = replace(each, fabric=replace(each.fabric, node_gbps=gbps, latency_s=1e-4))
    wide = replace(slow, fabric=replace(slow.fabric, node_gbps=gbps * more))
    quick = replace(slow, fabric=replace(slow.fabric, latency_s=1e-4 / more))

    times_s = [found.step_time_s.value for found in predict([slow, wide, quick])]
    assert max(times_s) <= times_s[0] * (1 + ROUNDING)


@given(each=cases())
@settings(max_examples=12, deadline=None)
def test_a_step_is_no_shorter_than_its_work_and_its_bytes(each: TrainingCase) -> None:
    rate = 3e9
    measured = replace(each, fabric=replace(each.fabric, measured_node_gbyte_per_s=rate / 1e9))
    (found,) = predict([measured])
    carried = columns_of([measured]).node_rate_ratio[0] * rate
    stages = each.pipeline_parallel

    assert found.step_time_s.value >= found.parts.compute_s * (1 - ROUNDING)
    if stages == 1:
        assert found.step_time_s.value >= found.network_bytes / carried * (1 - ROUNDING)


@given(each=cases())
@settings(max_examples=20, deadline=None)
def test_one_rank_exposes_nothing(each: TrainingCase) -> None:
    alone = replace(
        each,
        nodes=1,
        gpus_per_node=1,
        data_parallel=1,
        tensor_parallel=1,
        pipeline_parallel=1,
        virtual_stages=1,
    )
    (found,) = predict([alone])

    assert found.network_bytes == 0
    assert found.parts.exposed_network_s == 0
    assert found.parts.exposed_intra_node_s == 0
    assert found.overlapped_communication_s == 0


@given(several=st.lists(cases(), min_size=2, max_size=12), seed=st.integers(0, 1000))
@settings(max_examples=6, deadline=None)
def test_neighbours_in_a_sweep_change_nothing(several: list[TrainingCase], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(several))
    together = predict(several)
    shuffled = predict([several[index] for index in order])

    for position, index in enumerate(order):
        assert shuffled[position].step_time_s.value == pytest.approx(
            together[index].step_time_s.value, rel=ROUNDING
        )
    assert step_s(several[0]) == pytest.approx(together[0].step_time_s.value, rel=ROUNDING)


@given(each=cases(), factor=st.floats(0.1, 10.0))
@settings(max_examples=10, deadline=None)
def test_all_times_scaled_scale_the_step(each: TrainingCase, factor: float) -> None:
    columns = columns_of([each])
    compute = compute_costs(columns, default_knowledge())
    slower = replace(
        compute,
        **{
            field.name: getattr(compute, field.name) * factor
            for field in fields(compute)
            if field.name.endswith("_s")
        },
    )
    ratio = np.array([factor])
    waits = replace(each, data_s=each.data_s * factor)

    later = columns_of([waits])
    later = replace(later, memory_rate=later.memory_rate / factor)
    before = evaluate(columns, compute).step_s[0]
    after = evaluate(later, slower, communication_ratio=ratio).step_s[0]

    assert after == pytest.approx(factor * before, rel=1e-9)


def test_bytes_of_a_step_are_those_of_its_strategy() -> None:
    """FSDP sends (N−1)/N of the weights twice and of the gradients once through each node."""
    (found,) = predict([case(strategy="fsdp", framework="fms-fsdp")])
    columns = columns_of([BASE])
    layers = 8 * columns.shapes.layer_params[0]
    root = columns.shapes.embedding_params[0]

    expected = 15 / 16 * 2 * (3 * layers + 2 * root)
    assert found.network_bytes == pytest.approx(expected)


def test_ddp_sends_every_gradient_once() -> None:
    """2(N−1)/N of them, whatever the buckets. Source: Patarasuk and Yuan 2009."""
    plain = case(gradient_bytes=4)
    found = predict([plain, replace(plain, bucket_bytes=4e6), replace(plain, global_batch=256)])

    expected = 2 * 15 / 16 * 4 * BASE.model.params
    assert [each.network_bytes for each in found] == pytest.approx([expected] * 3, rel=0.01)


def test_accumulation_without_synchronisation_reduces_once() -> None:
    often = case(global_batch=256, sync_every_micro_batch=True)
    once = replace(often, sync_every_micro_batch=False)

    assert predict([once])[0].network_bytes * 4 == pytest.approx(predict([often])[0].network_bytes)
    assert step_s(once) < step_s(often)


def test_keeping_weights_gathered_saves_the_second_gather() -> None:
    full = case(strategy="fsdp", framework="fms-fsdp")
    kept = replace(full, reshard_after_forward=False)

    saved = predict([full])[0].network_bytes - predict([kept])[0].network_bytes
    layers = 8 * columns_of([full]).shapes.layer_params[0]

    assert saved == pytest.approx(15 / 16 * 2 * layers)


def test_hybrid_sharding_sends_less_than_full_sharding() -> None:
    """2(m−1)/m of gradients once, instead of (N−1)/N three times; shards are reduced in place."""
    full, hybrid = case(strategy="fsdp"), case(strategy="hsdp")
    slow = Fabric(transport="tcp", node_gbps=10)

    assert predict([hybrid])[0].network_bytes < predict([full])[0].network_bytes
    assert step_s(replace(hybrid, fabric=slow)) < step_s(replace(full, fabric=slow))


PIPED = case(
    strategy="megatron",
    model=ModelShape(
        name="wide", layers=32, hidden=4096, vocabulary=64, params=6.45e9, active_params=6.45e9
    ),
    nodes=4,
    data_parallel=8,
    pipeline_parallel=4,
    fabric=Fabric(transport="infiniband", node_gbps=1e6, latency_s=0.0),
    global_batch=4 * 8 * 32,
)


def test_a_pipeline_has_the_published_bubble() -> None:
    """(p−1)/m of the work, (p−1)/(vm) interleaved. Source: Narayanan et al. 2021, section 2.2."""
    plain, interleaved = predict([PIPED, replace(PIPED, virtual_stages=4)])

    assert plain.parts.bubble_s / plain.parts.compute_s == pytest.approx(3 / 32, rel=0.1)
    assert interleaved.parts.bubble_s / plain.parts.bubble_s == pytest.approx(1 / 4, rel=0.1)


def test_interleaved_stages_take_whole_rounds() -> None:
    odd = replace(PIPED, virtual_stages=4, global_batch=4 * 8 * 6)
    even = replace(odd, global_batch=4 * 8 * 8)
    (few, more) = predict([odd, even])

    assert few.parts.compute_s == pytest.approx(more.parts.compute_s * 6 / 8)
    assert few.step_time_s.value < more.step_time_s.value


ALONE = {"nodes": 1, "gpus_per_node": 1, "data_parallel": 1}


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({"fabric": Fabric(transport="tcp", node_gbps=1)}, Bottleneck.NETWORK),
        ({"data_s": 100.0}, Bottleneck.STORAGE),
        ({**ALONE, "micro_batch": 64, "model": PIPED.model}, Bottleneck.COMPUTE),
        ({**ALONE, "seq_len": 16, "global_batch": 4, "framework": "hf-trainer"}, Bottleneck.LAUNCH),
    ],
)
def test_what_a_step_waits_for(changes, bound) -> None:
    found = predict([case(**changes)])[0].bound

    assert found == bound


def test_sixteen_thousand_gpus_are_as_quick_as_sixteen() -> None:
    """Symmetric ranks are folded: the pieces are as many."""
    many = case(strategy="fsdp", nodes=2048, data_parallel=16384, global_batch=4 * 16384)
    few, wide = (work_of(columns_of([each]), _costs(each)) for each in (BASE, many))

    assert few.counts["layers"] == wide.counts["layers"]
    assert predict([many])[0].step_time_s.value > 0


def _costs(each: TrainingCase):
    return compute_costs(columns_of([each]), default_knowledge())


def pod_series(strategy: str) -> dict[str, float]:
    """Predicted over published on L40S pods, calibrated by one node and by two."""
    rows = {row.id.removeprefix("l40s-cluster-"): row for row in article_rows()}

    def asked(name: str) -> TrainingCase:
        return replace(rows[name].case, strategy=strategy)

    known = [
        Observation(case=asked(name), step_time_s=rows[name].step_time_s)
        for name in ("none-1", "pod-2")
    ]
    wanted = ["pod-2", "pod-4", "pod-8"]
    found = predict([asked(name) for name in wanted], fit(known, default_knowledge()))
    return {
        name: each.step_time_s.value / rows[name].step_time_s
        for name, each in zip(wanted, found, strict=True)
    }


def test_a_series_tells_hybrid_from_full_sharding() -> None:
    """What two nodes calibrate holds for four and eight only with 2(m−1)/m, which the trainer used.

    Source: "Network performance in distributed training" (catalog/articles.yaml), HYBRID_SHARD.
    """
    hybrid, full = pod_series("hsdp"), pod_series("fsdp")

    assert hybrid["pod-4"] == pytest.approx(1, abs=0.1)
    assert hybrid["pod-8"] == pytest.approx(1, abs=0.15)
    assert full["pod-4"] < hybrid["pod-4"] - 0.1
    assert full["pod-8"] < 0.8


def sweep(num_networks: int) -> list[TrainingCase]:
    return [
        case(strategy=strategy, fabric=Fabric(transport="roce", node_gbps=25.0 + number))
        for number in range(num_networks)
        for strategy in ("ddp", "fsdp", "hsdp", "megatron")
    ]


def test_a_sweeps_cases_are_computed_together() -> None:
    """For four times as many it takes not even twice the calls."""
    predict(sweep(1))
    few_calls = counted_calls(lambda: predict(sweep(10)))
    assert counted_calls(lambda: predict(sweep(40))) < 2 * few_calls


@pytest.mark.measured
def test_a_sweep_takes_a_millisecond_a_case_and_less() -> None:
    """CPU time, so that other work on the machine doesn't count; ten times what it takes."""
    many = sweep(500)
    predict(many[:4])
    start_s = time.process_time()
    predict(many)

    assert time.process_time() - start_s < 1e-3 * len(many)


def test_no_cases_have_no_predictions() -> None:
    assert predict([]) == []


def test_a_table_says_what_predictions_say() -> None:
    several = [BASE, case(strategy="fsdp")]
    table, found = predict_table(several), predict(several)

    assert [each.step_time_s.value for each in found] == list(table.evaluation.step_s)
    assert isinstance(found[0], Prediction)


def test_frozen_weights_count_two_thirds_of_their_flops() -> None:
    whole = case()
    answers = predict([whole, replace(whole, lora=True)])
    gone = answers[0].flops_per_token - answers[1].flops_per_token
    embedding = whole.model.vocabulary * whole.model.hidden
    assert gone == pytest.approx(2 * (whole.model.active_params - embedding))
