"""Does a calibrated machine predict steps by its own rates, in the right order?"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.making_systems import (
    ADAM_S,
    COPY_BYTES_PER_S,
    FLOPS_PER_S,
    HOST_BYTES_PER_S,
    MODEL,
    path,
    system,
    timing,
)

from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.case import Fabric
from broadgauge.predict.costs.curves import rising, time_at
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.system.costs import stand_in, system_costs
from broadgauge.predict.system.curves import fabric_on, host_share
from broadgauge.predict.system.host_overlap import host_overlaps
from broadgauge.predict.system.measured_points import gemm
from broadgauge.predict.system.steps import AskedStep, PredictedStep, predict_steps
from broadgauge.specs.machines.system import CollectiveTime, System, TrainedStep
from broadgauge.specs.networks.network import Network, payload_rate_gbps
from broadgauge.specs.workloads.gpt import GptModel
from broadgauge.specs.workloads.model_messages import fsdp_units
from broadgauge.specs.workloads.workload import TrainWorkload

ROOT = fsdp_units(MODEL)[-1]


def training(**changes: object) -> TrainWorkload:
    return TrainWorkload.model_validate({"kind": "train", "model": MODEL} | changes)


def asked(rate_gbps: float | None = 1.0, nodes: int = 2, **changes: object) -> AskedStep:
    network = Network(name="x", rate_gbps=rate_gbps) if nodes > 1 else None
    return AskedStep(workload=training(**changes), network=network, nodes=nodes, ranks_per_node=1)


def one(made: System, question: AskedStep) -> PredictedStep:
    return predict_steps(made, [question])[0]


def test_a_product_of_any_size_has_the_rate_that_all_have() -> None:
    made = system()
    models = [MODEL, GptModel(layers=1, hidden=96, heads=2), GptModel(layers=1, hidden=4096)]
    cases = [
        training_case(
            training(model=model),
            gpu=stand_in(made),
            nodes=1,
            ranks_per_node=1,
            fabric=Fabric(),
        )
        for model in models
    ]
    columns = columns_of(cases)
    hidden = columns.shapes.hidden
    passes = gemm(columns, made.compute, columns.tokens, hidden, hidden)
    flops = 2 * columns.tokens * hidden**2
    assert np.allclose(passes.forward_s, flops / FLOPS_PER_S, rtol=1e-9)
    assert np.allclose(passes.backward_s, 2 * flops / FLOPS_PER_S, rtol=1e-9)


def test_a_mixtures_step_has_the_products_of_the_experts_that_a_token_passes() -> None:
    """And is a little longer than that of one MLP as wide as they are together: all experts'
    weights are updated."""
    made = system()
    sizes = {"kind": "llama", "layers": 4, "hidden": 256, "heads": 4, "seq_len": 64}
    mixture = {"experts": 8, "experts_per_token": 2, "ffn_hidden": 512}
    models = [sizes | {"ffn_hidden": 1024}, sizes | mixture, sizes | {"ffn_hidden": 512}]
    wide, chosen, narrow = (one(made, asked(nodes=1, model=model)).step_s for model in models)
    expert = 3 * 256 * 512 * 4
    products_s, update_s = 6 * expert * 2 * 64 / FLOPS_PER_S, expert * ADAM_S
    assert wide - narrow == pytest.approx(products_s + update_s, rel=0.01)
    assert chosen - wide == pytest.approx(6 * update_s, rel=0.01)


def test_a_step_of_one_rank_is_no_less_than_its_products_and_launches() -> None:
    made = system()
    step = one(made, asked(nodes=1))
    products_s = 6 * 12 * MODEL.hidden**2 * 2 * MODEL.seq_len * MODEL.layers / FLOPS_PER_S
    launch = made.compute.launch
    launches_s = MODEL.layers * (launch.layer_forward.median_s + launch.layer_backward.median_s)
    assert step.step_s == step.without_s
    assert products_s + launches_s < step.step_s < 3 * (products_s + launches_s)


def test_the_step_that_was_measured_is_predicted_as_measured() -> None:
    assert one(system(has_steps=True), asked(nodes=1)).step_s == pytest.approx(0.1, rel=1e-6)


def test_a_link_carries_its_payload_rate_and_the_host_its_own() -> None:
    made = system()
    size = 2.0**26
    host = fabric_on(made.paths, Network(name="x"), 2, 1).curves[0]
    slow = fabric_on(made.paths, Network(name="x", rate_gbps=0.2), 2, 1).curves[0]
    assert time_at(host, size) == pytest.approx(size / HOST_BYTES_PER_S, rel=0.01)
    wire_s = size / (payload_rate_gbps(0.2, 1500) * 1e9 / 8)
    assert wire_s < time_at(slow, size) < 1.02 * wire_s
    assert time_at(slow, 4 * size) == pytest.approx(4 * time_at(slow, size))


def test_a_collective_that_does_not_fill_the_wire_is_known_by_the_shaped_path() -> None:
    """All three take as long for a size, of which all_gather sends half."""
    made = system()
    host = path()
    rate = payload_rate_gbps(0.5, 1500) * 1e9 / 8
    slow = tuple(
        CollectiveTime(
            op=each.op,
            size_bytes=each.size_bytes,
            time=timing(each.size_bytes / rate + 0.5 * each.time.median_s),
        )
        for each in host.collectives
    )
    shaped = host.model_copy(update={"name": "s", "rate_gbps": 0.5, "collectives": slow})
    found = {op: each.wire_ratio for op, each in host_overlaps((host, shaped), host).items()}
    assert found["all_reduce"] == found["reduce_scatter"] == 1
    assert found["all_gather"] == pytest.approx(2.0, rel=0.01)
    known = made.model_copy(update={"paths": (host, shaped)})
    waits = [
        (step := one(each, asked(0.1, strategy="fsdp"))).step_s - step.without_s
        for each in (made, known)
    ]
    assert waits[1] / waits[0] == pytest.approx(1.5, rel=0.1)  # gathers are half of its bytes


def test_what_disturbs_a_short_message_is_no_time_of_the_host() -> None:
    assert rising([7.0, 0.2, 0.3, 8.0, 5.0, 9.0]) == (0.2, 0.2, 0.3, 5.0, 5.0, 9.0)


def test_more_nodes_take_their_turns() -> None:
    made = system()
    two, four = (fabric_on(made.paths, Network(name="x"), nodes, 1) for nodes in (2, 4))
    small, large = 2.0**10, 2.0**26
    assert time_at(four.curves[0], small) == pytest.approx(
        3 * time_at(two.curves[0], small), rel=0.02
    )
    assert time_at(four.curves[0], large) == pytest.approx(
        1.5 * time_at(two.curves[0], large), rel=0.02
    )


@pytest.mark.parametrize("unhidden", [0.1, 0.6])
def test_how_much_of_the_hosts_work_is_hidden_is_read_from_the_shaped_path(
    unhidden: float,
) -> None:
    host = path()
    rate = payload_rate_gbps(0.5, 1500) * 1e9 / 8
    factors = {"all_reduce": 1.0, "all_gather": 0.5, "reduce_scatter": 1.0}
    slow = tuple(
        CollectiveTime(
            op=each.op,
            size_bytes=each.size_bytes,
            time=timing(factors[each.op] * each.size_bytes / rate + unhidden * each.time.median_s),
        )
        for each in host.collectives
    )
    shaped = host.model_copy(update={"name": "s", "rate_gbps": 0.5, "collectives": slow})
    seen = {op: each.unhidden_ratio for op, each in host_overlaps((host, shaped), host).items()}
    assert seen == pytest.approx(dict.fromkeys(factors, unhidden), rel=0.01)
    assert host_overlaps((host,), host) == {}


def test_on_a_slow_wire_the_host_works_a_small_part_of_the_time() -> None:
    made = system()
    shares = [
        host_share(
            made.paths, fabric_on(made.paths, Network(name="x", rate_gbps=rate), 2, 1), 2.0**24
        )
        for rate in (0.1, 1.0, 40.0, None)
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.01
    assert shares[-1] == 1


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.floats(0.05, 50), min_size=2, max_size=2, unique=True),
    st.sampled_from(["ddp", "fsdp"]),
    st.sampled_from([1, 4]),
)
def test_more_bandwidth_is_never_slower_and_no_step_beats_its_parts(
    rates: list[float], strategy: str, accumulation: int
) -> None:
    slow, fast = sorted(rates)
    changes = {"strategy": strategy, "accumulation": accumulation}
    made = system(has_steps=True)
    steps = predict_steps(made, [asked(slow, **changes), asked(fast, **changes)])
    assert steps[0].step_s >= steps[1].step_s * (1 - 1e-9)
    for rate, step in zip((slow, fast), steps, strict=True):
        wire_s = step.network_bytes / (payload_rate_gbps(rate, 1500) * 1e9 / 8)
        # The root's gather and the last reduction are the same whatever the model makes of units.
        wire_s *= 0.95
        assert step.step_s >= max(step.without_s, wire_s) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("changes", "sent_bytes"),
    [
        ({}, 4 * MODEL.parameters),
        ({"gradient_dtype": "bfloat16"}, 2 * MODEL.parameters),
        ({"accumulation": 4}, 4 * MODEL.parameters),
        ({"bucket_cap_bytes": 2**18}, 4 * MODEL.parameters),
        # half of each gather; Gloo's reduce_scatter is a whole all_reduce
        ({"strategy": "fsdp"}, 4 * MODEL.parameters + 2 * (2 * MODEL.parameters - ROOT)),
    ],
)
def test_a_step_sends_what_the_trainer_sends(changes: dict[str, object], sent_bytes: int) -> None:
    """Between two nodes; FSDP's root is gathered once, its blocks twice."""
    sent = one(system(), asked(**changes)).network_bytes
    assert sent == pytest.approx(sent_bytes, rel=0.005)


def test_gloos_reduce_scatter_takes_a_whole_all_reduce() -> None:
    """At 50 Mbit/s the wire is all: gathers twice half of the parameters, gradients whole."""
    made = system()
    rate = payload_rate_gbps(0.05, 1500) * 1e9 / 8
    step = one(made, asked(0.05, strategy="fsdp"))
    waited = (step.step_s - step.without_s) * rate
    assert waited == pytest.approx(4 * 2 * MODEL.parameters, rel=0.1)


def test_a_strategys_own_work_is_taken_from_the_short_trainings() -> None:
    made = system(has_steps=True)
    plain = one(made, asked(strategy="fsdp"))
    trained = TrainedStep(
        path="between-nodes",
        strategy="fsdp",
        model=MODEL,
        dtype="float32",
        batch=2,
        time=timing(0.5),
        without_communication=timing(plain.without_s + 0.04),
    )
    known = made.model_copy(update={"trained": (trained,)})
    # Of two ranks the slower counts, which the model adds to any work.
    assert one(known, asked(strategy="fsdp")).without_s == pytest.approx(
        plain.without_s + 0.04, rel=0.01
    )
    assert one(known, asked()).without_s == one(made, asked()).without_s
    half = replace(asked(strategy="fsdp"), workload=training(strategy="fsdp", model=_half()))
    added_s = one(known, half).without_s - one(made, half).without_s
    assert added_s == pytest.approx(0.02, rel=0.05)


def _half() -> GptModel:
    return MODEL.model_copy(update={"layers": MODEL.layers // 2})


def test_memory_bounds_what_moves_more_than_it_computes() -> None:
    """The update of all parameters, and gradients that are added up."""
    made = system()
    once, twice = (one(made, asked(nodes=1, accumulation=number)) for number in (1, 2))
    added_s = 12 * MODEL.parameters / COPY_BYTES_PER_S
    updated_s = 2e-9 * MODEL.parameters
    assert 2 * once.step_s - twice.step_s == pytest.approx(updated_s - 2 * added_s, rel=0.2)


def test_costs_are_of_the_case_and_not_of_its_neighbours() -> None:
    made = system(has_steps=True)
    questions = [asked(), asked(strategy="fsdp"), asked(0.1, accumulation=3), asked(None)]
    alone = [one(made, each).step_s for each in questions]
    assert [each.step_s for each in predict_steps(made, questions)] == pytest.approx(alone)
    assert predict_steps(made, []) == []
    columns = columns_of(
        [training_case(training(), gpu=stand_in(made), nodes=1, ranks_per_node=1, fabric=Fabric())]
    )
    assert (system_costs(columns, made).layer_forward_launch_s == 0).all()  # a core does both
