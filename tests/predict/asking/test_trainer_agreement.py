"""Does predict send what the reference trainer sends, among the same ranks, and hold as much?

What the trainer does is engine/kinds/training.py's, which tests/probes holds against real ranks.
"""

import statistics
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.costly import costly

from broadgauge.catalog.traffic import groups_of
from broadgauge.catalog.trained_models import trained_model
from broadgauge.engine.kinds.training import split, step_collectives
from broadgauge.messages.model_shape import TRAINED_FLOPS, GptShape
from broadgauge.messages.rank import RankGroup, StepCollective
from broadgauge.messages.strategies import STRATEGIES
from broadgauge.predict.asking.workload_case import (
    fabric_of,
    model_shape,
    training_case,
    why_unknown,
)
from broadgauge.predict.case import CollectiveCurve, Fabric, Op, TrainingCase
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.pieces import GroupKind
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import default_knowledge
from broadgauge.predict.memory.fullest_gpu import memory_use
from broadgauge.predict.prediction import MemoryUse
from broadgauge.predict.predictor import predict
from broadgauge.predict.system.trainer_bytes import step_bytes
from broadgauge.predict.timeline.evaluation import evaluate
from broadgauge.predict.timeline.strategies.buckets import buckets
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.model_messages import ddp_buckets, fsdp_units, gradient_elements
from broadgauge.specs.workloads.workload import DATA_TYPE_BYTES, TrainWorkload

LINK = fabric_of(Network(name="link", rate_gbps=1))
BYTE_S = 1e-12
"""Of a byte between ranks whose collectives take as long as they are large."""
STATE_BYTES = 16
"""Of a parameter in float32: itself, its gradient and AdamW's two moments."""
OPS: tuple[Op, ...] = ("all_reduce", "all_gather", "reduce_scatter")


@st.composite
def models(draw: st.DrawFn) -> dict[str, Any]:
    """GPTs, whose positions may weigh as much as a layer, and Llama-like ones."""
    shape: dict[str, Any] = {
        "layers": draw(st.integers(1, 6)),
        "hidden": 16 * draw(st.integers(4, 32)),
        "heads": 8,
        "vocabulary": draw(st.sampled_from((256, 2000, 50257))),
        "seq_len": draw(st.sampled_from((32, 1024))),
        "tied_head": draw(st.booleans()),
    }
    if draw(st.booleans()):
        return shape
    experts = draw(st.sampled_from((1, 1, 8)))
    return shape | {
        "kind": "llama",
        "experts": experts,
        "experts_per_token": min(2, experts),
        "kv_heads": draw(st.sampled_from((1, 2, 8))),
        "head_dim": draw(st.sampled_from((None, 64))),
        "ffn_hidden": 8 * draw(st.integers(8, 256)),
        "bias": draw(st.sampled_from(("none", "qkv", "attention", "all"))),
        "norms_per_layer": draw(st.sampled_from((2, 4))),
        "norms_queries_and_keys": draw(st.booleans()),
    }


def workloads() -> st.SearchStrategy[TrainWorkload]:
    types = st.sampled_from(sorted(DATA_TYPE_BYTES))
    strategies = st.sampled_from(sorted(STRATEGIES))
    fields = strategies.flatmap(lambda strategy: st.fixed_dictionaries(_fields(strategy, types)))
    return fields.filter(_go_together).map(TrainWorkload.model_validate)


def _go_together(fields: dict[str, Any]) -> bool:
    """Mixtures of experts are compiled in bfloat16 only, and have no adapters beside experts."""
    if fields["model"].get("experts", 1) == 1:
        return True
    targets = None if fields["lora"] is None else fields["lora"]["targets"]
    return targets is None and (fields["dtype"] == "bfloat16" or not fields["compile"])


def _fields(strategy: str, types: st.SearchStrategy[str]) -> dict[str, st.SearchStrategy[Any]]:
    adapters = st.fixed_dictionaries(
        {
            "rank": st.sampled_from((1, 16, 64)),
            "targets": st.sampled_from((None, ("projection", "down"), ("up",))),
        }
    )
    is_sharded = STRATEGIES[strategy].is_sharded
    return {
        "kind": st.just("train"),
        "strategy": st.just(strategy),
        "lora": st.none() | adapters,
        "reduce_each_micro_batch": st.booleans() if is_sharded else st.just(False),
        "cpu_offload": st.booleans() if is_sharded else st.just(False),
        "activation_checkpointing": st.sampled_from(("none", "selective", "full")),
        "attention": st.sampled_from(("sdpa", "flash", "eager")),
        "model": models(),
        "batch_per_rank": st.integers(1, 4),
        "accumulation": st.sampled_from((1, 2, 3)),
        "reshard_after_forward": st.booleans(),
        "dtype": types,
        "gradient_dtype": types,
        "compile": st.booleans(),
    }


NODES, RANKS = st.sampled_from((1, 2, 4)), st.integers(1, 4)


def asked_of(
    workload: TrainWorkload, nodes: int, ranks_per_node: int, fabric: Fabric = LINK
) -> TrainingCase:
    return training_case(
        workload, gpu="h200", nodes=nodes, ranks_per_node=ranks_per_node, fabric=fabric
    )


def is_inside(sent: StepCollective, nodes: int, ranks_per_node: int) -> bool:
    """Is every group that makes it on one node?"""
    world = RankGroup(size=nodes * ranks_per_node)
    groups = groups_of(sent.group or world, world.size)
    return all(len({rank // ranks_per_node for rank in group}) == 1 for group in groups)


@costly(60)
@given(workloads(), NODES, RANKS)
def test_a_step_sends_between_nodes_what_the_trainer_sends(
    workload: TrainWorkload, nodes: int, ranks_per_node: int
) -> None:
    assume(why_unknown(workload, nodes, ranks_per_node) is None)
    (found,) = predict([asked_of(workload, nodes, ranks_per_node)])
    sent = step_bytes(workload, "nccl", nodes, ranks_per_node)
    assert found.network_bytes == pytest.approx(sent, rel=1e-9, abs=2 * ranks_per_node)


@costly(60)
@given(workloads(), st.sampled_from((1, 2, 4)), st.integers(2, 4))
def test_a_step_sends_inside_nodes_what_the_trainer_sends(
    workload: TrainWorkload, nodes: int, ranks_per_node: int
) -> None:
    """Of groups of one node: collectives between them that take a second a byte tell their sizes,
    and whatever is sent to other nodes takes no links inside."""
    collectives = step_collectives(workload, nodes, ranks_per_node)
    assume(all(is_inside(each, nodes, ranks_per_node) for each in collectives) or nodes > 1)
    assume(nodes == 1 or workload.strategy == "hsdp")
    sizes = (1.0, 1e15)
    curves = tuple(
        CollectiveCurve(
            op=op,
            nodes=1,
            ranks_per_node=ranks_per_node,
            message_bytes=sizes,
            time_s=(sizes[0] * BYTE_S, sizes[1] * BYTE_S),
        )
        for op in OPS
    )
    case = asked_of(workload, nodes, ranks_per_node, Fabric(transport="tcp", curves=curves))
    columns = columns_of([case])
    found = evaluate(columns, compute_costs(columns, default_knowledge()))
    inside = [each for each in collectives if is_inside(each, nodes, ranks_per_node)]
    assert found.intra_busy_s[0] / BYTE_S == pytest.approx(
        sum(each.size_bytes for each in inside), rel=1e-6
    )


@settings(deadline=None)
@given(workloads(), NODES, RANKS)
def test_groups_are_the_trainers(workload: TrainWorkload, nodes: int, ranks_per_node: int) -> None:
    """As many ranks, on as many nodes, and as many of them on each."""
    assume(why_unknown(workload, nodes, ranks_per_node) is None)
    columns = columns_of([asked_of(workload, nodes, ranks_per_node)])
    world = nodes * ranks_per_node
    is_sharded = STRATEGIES[workload.strategy].is_sharded
    for sent in step_collectives(workload, nodes, ranks_per_node):
        kind: GroupKind = "data"
        if is_sharded:
            kind = "replica" if sent.op == "all_reduce" else "shard"
        group = group_of(kind, columns)
        members = next(iter(groups_of(sent.group or RankGroup(size=world), world)))
        spanned = {rank // ranks_per_node for rank in members}
        assert (group.ranks[0], group.nodes[0]) == (len(members), len(spanned))
        assert group.ranks_per_node[0] == len(members) / len(spanned)


@settings(deadline=None)
@given(workloads(), NODES, RANKS)
def test_a_rank_holds_the_trainers_states(
    workload: TrainWorkload, nodes: int, ranks_per_node: int
) -> None:
    """And beside them, where they are sharded, at least the units that are whole for a while. What
    is frozen is held in the arithmetic's type; what is offloaded, not on the GPU."""
    assume(why_unknown(workload, nodes, ranks_per_node) is None)
    shards = split(workload, nodes, ranks_per_node).shards
    use = memory_use(asked_of(workload, nodes, ranks_per_node))
    frozen, trained = 0, workload.trained_parameters
    if workload.lora is not None:
        frozen = workload.model.parameters * DATA_TYPE_BYTES[workload.dtype]
    of_model = (frozen + trained * STATE_BYTES) / shards
    is_away = workload.cpu_offload
    assert use.states_bytes == pytest.approx(0.0 if is_away else of_model, rel=1e-9)
    if STRATEGIES[workload.strategy].is_sharded:
        block, *_, rest = units = fsdp_units(workload.model, workload.adapters)
        whole = block + rest if workload.reshard_after_forward else sum(units)
        assert use.buffers_bytes >= whole * DATA_TYPE_BYTES[workload.dtype]


def _use(strategy: str, nodes: int, ranks_per_node: int) -> MemoryUse:
    workload = TrainWorkload.model_validate(
        {"kind": "train", "strategy": strategy, "model": {"kind": "llama"}}
    )
    return memory_use(asked_of(workload, nodes, ranks_per_node))


def test_more_nodes_hold_no_less_of_hsdps_states() -> None:
    assert _use("hsdp", 4, 2).states_bytes == _use("hsdp", 2, 2).states_bytes
    assert _use("hsdp", 1, 2).states_bytes == _use("fsdp", 2, 1).states_bytes
    assert _use("fsdp", 4, 2).states_bytes == _use("fsdp", 2, 2).states_bytes / 2


@settings(deadline=None)
@given(models())
def test_what_is_in_no_layer_is_the_units_rest(data: dict[str, Any]) -> None:
    workload = TrainWorkload.model_validate({"kind": "train", "model": data})
    case = asked_of(workload, 1, 1)
    shapes = columns_of([case]).shapes
    block, *_, rest = fsdp_units(workload.model)
    assert (shapes.layer_params[0], shapes.outside_params[0]) == (block, rest)
    assert model_shape(workload.model).params == workload.model.parameters


@settings(deadline=None)
@given(models())
def test_flops_of_a_token_are_the_trainers(data: dict[str, Any]) -> None:
    """Which MFU is measured and predicted by. Predictions leave out the last norm."""
    workload = TrainWorkload.model_validate({"kind": "train", "model": data})
    shape = workload.model.shape
    norm = 2 * shape.hidden if isinstance(shape, GptShape) else shape.hidden
    (found,) = predict([asked_of(workload, 1, 1)])
    assert found.flops_per_token == pytest.approx(shape.flops_per_token - TRAINED_FLOPS * norm)


@pytest.mark.parametrize("cap_bytes", [None, 10**6, 10**9])
@pytest.mark.parametrize("name", ["gpt2", "llama-3.1-8b", "gpt-oss-20b"])
def test_buckets_of_layers_are_about_as_large_as_ddps(name: str, cap_bytes: int | None) -> None:
    """They are taken for equally large ones. A parameter is never cut, and a mixture's largest is
    one matrix of all its experts."""
    model = trained_model(name) | {"layers": 4, "vocabulary": 256}
    workload = TrainWorkload.model_validate(
        {"kind": "train", "model": model, "bucket_cap_bytes": cap_bytes}
    )
    real = [4 * size for size in ddp_buckets(gradient_elements(workload.model), cap_bytes)]
    _, bucket_bytes = buckets(columns_of([asked_of(workload, 2, 1)]))
    middle = statistics.median(size for size in real if size > max(real) / 8)
    assert middle / 2 <= bucket_bytes[0] <= 2 * middle
