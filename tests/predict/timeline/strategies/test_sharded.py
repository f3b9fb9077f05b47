"""Does a layer wait for the one before it, and for what its ranks exchange, when it is sharded?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly
from tests.predict.making_cases import SMALL, case

from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import default_knowledge
from broadgauge.predict.predictor import predict
from broadgauge.predict.timeline.evaluation import evaluate, work_of
from broadgauge.predict.timeline.strategies.work import Work

WIDE = replace(
    SMALL, hidden=8192, heads=64, params=12 * 8 * 8192.0**2, active_params=12 * 8 * 8192.0**2
)
TENSOR = case(model=WIDE, nodes=1, data_parallel=1, tensor_parallel=8, seq_len=4096, global_batch=8)


@pytest.mark.parametrize("strategy", ["fsdp", "hsdp"])
def test_sharding_hides_no_exchange_within_a_layer(strategy) -> None:
    """A layer's tensor-parallel sums are on the way to the next, whoever holds the weights."""
    plain, sharded = predict([TENSOR, replace(TENSOR, strategy=strategy)])
    exposed_s = plain.parts.exposed_intra_node_s
    assert exposed_s > 0.1 * plain.step_time_s.value
    assert sharded.parts.exposed_intra_node_s >= exposed_s * (1 - 1e-9)


@given(
    strategy=st.sampled_from(("ddp", "fsdp", "hsdp")),
    nodes=st.sampled_from((1, 2, 8)),
    tensor=st.sampled_from((1, 2, 4, 8)),
    micro_batches=st.integers(1, 3),
    recompute=st.sampled_from(("none", "full")),
)
@costly(60)
def test_a_chain_of_layers_is_never_faster_than_its_critical_path(
    strategy, nodes, tensor, micro_batches, recompute
) -> None:
    """Every layer, its kernels and exchanges, forward and back; head and update beside them."""
    data = 8 * nodes // tensor
    each = replace(
        TENSOR,
        strategy=strategy,
        nodes=nodes,
        data_parallel=data,
        tensor_parallel=tensor,
        micro_batch=2,
        global_batch=2 * micro_batches * data,
        recompute=recompute,
    )
    columns = columns_of((each,), default_knowledge())
    compute = compute_costs(columns, default_knowledge())
    work = work_of(columns, compute)

    chain_s = work.compute.layer_forward_s + exchange_s(work, "tensor forward")
    chain_s = chain_s + work.compute.layer_recompute_s + work.compute.layer_backward_s
    chain_s = chain_s + exchange_s(work, "tensor backward")
    pass_s = work.counts["layers"] * chain_s + work.compute.head_forward_s
    pass_s = pass_s + work.compute.head_backward_s
    path_s = work.counts["micro_batches"] * pass_s + work.compute.optimizer_s

    assert evaluate(columns, compute).step_s[0] >= path_s[0] * (1 - 1e-9)


def exchange_s(work: Work, name: str):
    cost = work.collectives[name]
    return max(cost.intra_s, cost.inter_s)
