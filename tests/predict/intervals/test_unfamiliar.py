"""Is an interval wider for what few have measured, and never narrower for knowing less?"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly
from tests.predict.making_cases import BASE, SMALL, cases

from broadgauge.catalog.widenings import known_widenings
from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.link_rates import headroom_ratio
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.intervals.uncertainty import CLASS_LOG
from broadgauge.predict.intervals.unfamiliar import KIND_WORDS, kinds_of
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import predict

WIDE = replace(SMALL, hidden=4096, params=1.74e9, active_params=1.74e9)
PLAIN = replace(
    BASE,
    model=WIDE,
    gpu="h100-sxm",
    nodes=1,
    data_parallel=8,
    strategy="fsdp",
    framework="torchtitan",
    seq_len=4096,
    global_batch=32,
)
MIXTURE = replace(WIDE, architecture="moe", num_experts=8, active_params=0.9e9)
OF_EACH_KIND = {
    "mixture-of-experts": replace(PLAIN, model=MIXTURE),
    "fp8": replace(PLAIN, precision="fp8"),
    "tensor-parallel": replace(PLAIN, tensor_parallel=8, data_parallel=1),
    "pipeline-parallel": replace(PLAIN, strategy="megatron", pipeline_parallel=2, data_parallel=4),
    "context-parallel": replace(PLAIN, context_parallel=2, data_parallel=4),
}


def only(case: TrainingCase, knowledge: Knowledge | None = None) -> Prediction:
    (found,) = predict([case], knowledge)
    return found


def width(prediction: Prediction) -> float:
    return math.log(prediction.step_time_s.high / prediction.step_time_s.low)


@pytest.mark.parametrize("kind", OF_EACH_KIND)
def test_a_kind_that_few_have_measured_is_less_certain_than_what_many_have(kind: str) -> None:
    plain, unfamiliar = only(PLAIN), only(OF_EACH_KIND[kind])
    assert plain.widened is None
    assert unfamiliar.widened is not None
    assert unfamiliar.widened.kind == kind
    assert unfamiliar.widened.width_ratio > 1.5
    assert width(unfamiliar) > 1.5 * width(plain)


def test_every_kind_is_asked_for_and_has_an_entry() -> None:
    columns = columns_of(list(OF_EACH_KIND.values()))
    assert set(kinds_of(columns)) == set(KIND_WORDS) == {each.name for each in known_widenings()}
    for place, (kind, flags) in enumerate(kinds_of(columns).items()):
        assert flags.tolist() == [index == place for index in range(len(columns))], kind


RATIOS = st.dictionaries(st.sampled_from(sorted(KIND_WORDS)), st.floats(1, 5))


@given(case=cases(), ratios=RATIOS, more=RATIOS)
@costly(30)
def test_a_larger_ratio_never_narrows(case, ratios, more) -> None:
    larger = {kind: ratios.get(kind, 1.0) * more.get(kind, 1.0) for kind in {*ratios, *more}}
    less, wide = (
        only(case, replace(default_knowledge(), widenings=each)).step_time_s
        for each in (ratios, larger)
    )
    assert wide.value == less.value
    assert wide.low <= less.low * (1 + 1e-12)
    assert wide.high >= less.high * (1 - 1e-12)
    assert wide.low < wide.value < wide.high


def test_of_several_kinds_the_widest_counts() -> None:
    both = replace(OF_EACH_KIND["context-parallel"], precision="fp8")
    found, *alone = (
        only(case).widened for case in (both, OF_EACH_KIND["context-parallel"], OF_EACH_KIND["fp8"])
    )
    assert found == max(alone, key=lambda each: each.width_ratio)


def test_a_measured_step_of_its_way_makes_a_kind_familiar() -> None:
    asked = OF_EACH_KIND["fp8"]
    measured = replace(asked, micro_batch=2, global_batch=16)
    step_s = only(measured).step_time_s.value
    known = fit([Observation(case=measured, step_time_s=step_s)], default_knowledge())
    assert only(asked, known).widened is None
    assert width(only(asked, known)) < 0.6 * width(only(asked))
    dense = fit([Observation(case=PLAIN, step_time_s=step_s)], default_knowledge())
    for kind in ("mixture-of-experts", "context-parallel", "tensor-parallel"):
        assert only(OF_EACH_KIND[kind], dense).widened is not None, kind


def test_what_waits_between_nodes_is_as_sure_as_ever() -> None:
    """FP8 makes no network uncertain: the wider part shrinks with what kernels are of a step."""
    slow = replace(
        PLAIN, nodes=2, data_parallel=16, micro_batch=1, global_batch=16,
        fabric=replace(BASE.fabric, node_gbps=5),
    )  # fmt: skip
    waiting = only(slow)
    assert waiting.parts.exposed_network_s > 0.8 * waiting.step_time_s.value
    assert width(only(replace(slow, precision="fp8"))) < 1.2 * width(waiting)


@pytest.mark.parametrize("source", ["torchtitan", "NVIDIA NeMo/Megatron"])
def test_a_source_is_scored_without_its_own_rows(source: str) -> None:
    left = default_knowledge().without(source)
    for entry in known_widenings():
        expected = entry.without_ratio.get(source, entry.width_ratio)
        assert left.widenings[entry.name] == expected
        assert default_knowledge().without(source.upper()).widenings == left.widenings
    assert left.widenings != default_knowledge().widenings
    assert left.values == default_knowledge().values


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": "fsdp", "nodes": 2, "data_parallel": 16, "micro_batch": 1, "global_batch": 16},
        {"gpu": "l40s", "micro_batch": 1, "global_batch": 8},
    ],
    ids=["between nodes", "inside a node"],
)
def test_links_are_never_as_sure_as_kernels(changes: dict[str, object]) -> None:
    """No shipped residual is of links: those of kernels say nothing of them. How much faster they
    may be ends where their bytes go at the nominal rate."""
    found = only(replace(PLAIN, **changes))
    parts = found.parts
    waits_s = parts.exposed_network_s + parts.exposed_intra_node_s
    assert waits_s > 0.3 * found.step_time_s.value
    assert "rate between" in found.dominant or "inside a node" in found.dominant
    assert not {"network-rdma", "intra_node"} & default_knowledge().residuals.keys()
    logs = np.log([
        found.step_time_s.value / found.step_time_s.low,
        found.step_time_s.high / found.step_time_s.value,
    ])  # fmt: skip
    columns = columns_of((found.case,))
    room = float(np.log(headroom_ratio(group_of("data", columns), columns)[0]))
    assert logs[0] >= min(CLASS_LOG, room) * (1 - 1e-9)
    assert logs[1] >= CLASS_LOG * (1 - 1e-9)
