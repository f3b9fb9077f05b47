"""Intervals hold the point, follow residuals, and grow with what is not known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.predict.making_cases import BASE, cases

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.predict.asking.combinations import expand
from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.facts.knowledge import Factor, Knowledge, default_knowledge
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import predict

ONE_NODE = replace(BASE, nodes=1, data_parallel=8, framework="llm-foundry")


def only(case: TrainingCase, knowledge: Knowledge | None = None) -> Prediction:
    (found,) = predict([case], knowledge)
    return found


def width(prediction: Prediction) -> float:
    return prediction.step_time_s.high / prediction.step_time_s.low


@settings(max_examples=30, deadline=None)
@given(cases())
def test_the_interval_holds_the_point(case: TrainingCase) -> None:
    interval = only(case).step_time_s
    assert 0 < interval.low < interval.value < interval.high < np.inf


def test_what_was_never_seen_is_less_certain() -> None:
    known, unknown = only(ONE_NODE), only(replace(ONE_NODE, framework="nobody-knows-this"))
    assert not known.is_outside
    assert unknown.is_outside
    assert width(unknown) > width(known)


def test_a_measured_step_of_the_same_system_narrows() -> None:
    system = ("a100-sxm-80gb", "llm-foundry")
    factor = Factor(value_ratio=1.0, log_sd=0.05, is_identified=True)
    knowledge = default_knowledge().with_factors({("compute", *system): factor})
    calibrated = only(ONE_NODE, knowledge)
    assert calibrated.is_calibrated
    assert width(calibrated) < width(only(ONE_NODE))


def test_a_measured_step_narrows_what_is_like_it_most() -> None:
    """A step of another way of training, of other sizes, says nearly nothing."""
    step_s = only(ONE_NODE).step_time_s.value
    known = fit([Observation(case=ONE_NODE, step_time_s=1.2 * step_s)], default_knowledge())
    larger = replace(ONE_NODE, micro_batch=64, global_batch=512)
    adapted = replace(larger, lora=True)
    asked = (ONE_NODE, larger, adapted)
    ratios = [math.log(width(only(case, known))) / math.log(width(only(case))) for case in asked]
    assert max(ratios[:2]) < 0.9
    assert ratios[2] == pytest.approx(1, abs=0.01)
    assert not only(adapted, known).is_calibrated


def test_a_network_that_nobody_measured_is_named() -> None:
    slow = replace(BASE, fabric=Fabric(transport="tcp", node_gbps=10), micro_batch=1)
    found = only(replace(slow, global_batch=16))
    assert "sockets" in found.dominant
    assert "collectives probe" in found.narrowed_by


def test_bytes_that_the_busy_time_does_not_hold_are_no_floor() -> None:
    """With pipelines they are of another stage than the busy time."""
    asked = {"model": "llama-3.1-70b", "gpu": "h100-sxm", "nodes": 4, "network": "roce-400g"}
    asked |= {"tensor_parallel": 8, "pipeline_parallel": 4}
    (case,) = expand({key: [value] for key, value in asked.items()}, shipped_catalog()).cases
    found = only(case, replace(default_knowledge(), residuals={"all": (-5.0, 5.0)}))
    at_nominal_s = found.network_bytes / (400e9 / 8)
    assert at_nominal_s > found.network_busy_s
    assert found.step_time_s.low < at_nominal_s


def test_an_unstated_fabric_is_what_it_is_priced_as() -> None:
    """As InfiniBand: its interval and what would narrow it are those of RDMA."""
    waiting = replace(BASE, strategy="fsdp", micro_batch=1, global_batch=16)
    known, unknown = (
        only(replace(waiting, fabric=Fabric(transport=transport, node_gbps=100)))
        for transport in ("infiniband", "unknown")
    )
    assert unknown.step_time_s == known.step_time_s
    assert unknown.dominant == known.dominant
    assert "sockets" not in unknown.dominant
    assert "between two nodes" in unknown.narrowed_by


def test_what_waits_for_the_network_misses_as_networks_do() -> None:
    """Not as kernels of its family do; a step of kernels does."""
    waiting = replace(BASE, strategy="fsdp", micro_batch=1, global_batch=16)
    busy = replace(ONE_NODE, framework="torch", micro_batch=32, global_batch=256)
    known = {"plain": (-0.1, 0.1), "network-rdma": (-0.5, 0.5), "compute": (-0.3, 0.3)}
    knowledge = replace(default_knowledge(), residuals=known)
    of_network, of_kernels = only(waiting, knowledge), only(busy, knowledge)
    assert of_network.step_time_s.high / of_network.step_time_s.value == pytest.approx(np.exp(0.5))
    assert of_kernels.step_time_s.high / of_kernels.step_time_s.value == pytest.approx(np.exp(0.1))
