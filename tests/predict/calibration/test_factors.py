"""Calibration finds factors that were put in, and is neither poisoned nor sure without reason."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.predict.calibration.factors import SCALE, Observation, fit, step_s
from broadgauge.predict.case import Fabric, ModelShape, TrainingCase
from broadgauge.predict.facts.knowledge import Factor, Knowledge, default_knowledge
from broadgauge.predict.facts.similar_kernels import KERNEL_LOG_SD

MODEL = ModelShape(
    name="7b", layers=32, hidden=4096, vocabulary=32000, params=6.7e9, active_params=6.7e9
)
ONE_NODE = TrainingCase(
    model=MODEL,
    gpu="h100-sxm",
    gpus_per_node=8,
    strategy="fsdp",
    data_parallel=8,
    seq_len=4096,
    global_batch=16,
    micro_batch=2,
    framework="llm-foundry",
)
POD = Fabric(name="pod", transport="overlay", node_gbps=100)
TWO_NODES = replace(ONE_NODE, nodes=2, data_parallel=16, global_batch=32, fabric=POD)
COMPUTE = ("compute", "h100-sxm", "llm-foundry")
NODE_RATE = ("node_rate", "overlay", "100", "8", "prior")


def true(**ratios: float) -> Knowledge:
    keys = {"compute": COMPUTE, "node_rate": NODE_RATE}
    return default_knowledge().with_factors(
        {
            keys[name]: Factor(value_ratio=ratio, log_sd=0.0, is_identified=True)
            for name, ratio in ratios.items()
        }
    )


def observe(case: TrainingCase, knowledge: Knowledge, noise: float = 1.0) -> Observation:
    return Observation(case=case, step_time_s=float(step_s([case], knowledge)[0]) * noise)


def test_nothing_observed_changes_nothing() -> None:
    assert fit([], default_knowledge()) is default_knowledge()


def test_slow_kernels_are_found_in_a_step_of_one_node() -> None:
    found = fit([observe(ONE_NODE, true(compute=1.25))], default_knowledge())
    later = replace(ONE_NODE, micro_batch=4, global_batch=32)
    predicted = float(step_s([later], found)[0])
    assert predicted == pytest.approx(observe(later, true(compute=1.25)).step_time_s, rel=0.04)
    assert found.factors[COMPUTE].is_identified


@pytest.mark.parametrize("spread", [0.05, 0.3])
def test_a_measured_step_is_weighed_against_what_the_interval_said(spread: float) -> None:
    """Where others' kernels were predicted well, one slow step moves a system less."""
    said = {"all": (-1.28 * spread, 1.28 * spread)}
    known = replace(default_knowledge(), residuals=said)
    found = fit([observe(ONE_NODE, true(compute=1.25))], known)
    moved = math.log(found.factor(COMPUTE)) / math.log(1.25)
    rest = KERNEL_LOG_SD**2 + SCALE**2
    assert moved == pytest.approx(spread**2 / (spread**2 + rest), abs=0.1)


def test_a_network_bound_step_moves_the_network_and_not_the_kernels() -> None:
    truth = true(node_rate=0.4)
    found = fit([observe(TWO_NODES, truth)], default_knowledge())
    assert found.factors[NODE_RATE].value_ratio == pytest.approx(0.4, rel=0.1)
    assert found.factors[NODE_RATE].is_identified
    assert found.factor(COMPUTE) == pytest.approx(1, abs=0.02)
    assert not found.factors[COMPUTE].is_identified


def test_a_compute_bound_step_identifies_no_network() -> None:
    fast = replace(TWO_NODES, fabric=Fabric(name="pod", transport="roce", node_gbps=100 * 64))
    found = fit([observe(fast, default_knowledge(), 1.1)], default_knowledge())
    key = ("node_rate", "roce", "6400", "8", "prior")
    assert not found.factors[key].is_identified
    assert found.factors[key].value_ratio == pytest.approx(1, abs=0.1)


def test_one_bad_row_does_not_poison() -> None:
    sizes = (1.0, 2.0, 4.0)
    rows = [
        observe(replace(ONE_NODE, micro_batch=size, global_batch=8 * size), default_knowledge())
        for size in sizes
    ]
    rows[1] = Observation(case=rows[1].case, step_time_s=3 * rows[1].step_time_s)
    found = fit(rows, default_knowledge())
    assert abs(math.log(found.factor(COMPUTE))) < 0.1


def test_rows_in_another_order_give_the_same() -> None:
    rows = [observe(ONE_NODE, true(compute=0.9)), observe(TWO_NODES, true(node_rate=0.5))]
    one, other = fit(rows, default_knowledge()), fit(rows[::-1], default_knowledge())
    for key, factor in one.factors.items():
        assert other.factors[key].value_ratio == pytest.approx(factor.value_ratio, rel=1e-6)


@settings(max_examples=8, deadline=None)
@given(st.floats(0.6, 1.6), st.floats(0.6, 1.6))
def test_the_slowest_of_several_nodes_is_never_faster_than_one(one: float, several: float) -> None:
    """What two nodes do faster belongs to another term."""
    fast = replace(TWO_NODES, fabric=Fabric(name="pod", transport="roce", node_gbps=100 * 64))
    rows = [
        observe(ONE_NODE, default_knowledge(), one),
        observe(fast, default_knowledge(), several),
    ]
    found = fit(rows, default_knowledge())
    assert found.factor(("across", "roce", "6400", "8")) >= 1
