"""What each strategy sends, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predict.making_cases import BASE, case

from broadgauge.predict.case import Fabric, ModelShape, SplitStrategy, TrainingCase
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.network import price
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.predictor import predict
from broadgauge.predict.timeline.strategies.buckets import local_layer
from broadgauge.predict.timeline.strategies.exchanges import counts, exchanges
from broadgauge.predict.timeline.trace import pieces_of

MIXTRAL = ModelShape(
    name="mixtral-like",
    architecture="moe",
    layers=8,
    hidden=1024,
    heads=16,
    ffn_hidden=2048,
    gated_mlp=True,
    vocabulary=32000,
    params=5.06e8,
    active_params=2.04e8,
    num_experts=8,
)


def counted(each: TrainingCase, name: str) -> int:
    """How often a collective runs on the links inside nodes."""
    return sum(piece.name == name for piece in pieces_of(each)) // 2


def test_tensor_parallelism_all_reduces_twice_a_pass_and_layer() -> None:
    """b·s·h each. Source: Shoeybi et al. 2019, section 3."""
    split = case(
        strategy="megatron", tensor_parallel=8, data_parallel=2, micro_batch=128, global_batch=256
    )
    columns = columns_of([split])
    message = np.array([128 * 1024 * 1024 * 2.0])
    one_s = price("all_reduce", message, group_of("tensor", columns), columns).intra_s[0]

    (plain, again) = predict([split, replace(split, recompute="full")])

    assert plain.parts.exposed_intra_node_s == pytest.approx(8 * 4 * one_s, rel=0.01)
    assert again.parts.exposed_intra_node_s == pytest.approx(8 * 6 * one_s, rel=0.01)


def test_sequence_parallelism_sends_as_much_in_two_halves() -> None:
    """Korthikanti et al. 2022, section 4.2.2; a switch that adds up helps an all-reduce alone."""
    whole = case(gpu="h100-sxm", strategy="megatron", tensor_parallel=16, data_parallel=1)
    one, two = (
        exchanges(columns_of([replace(whole, sequence_parallel=on)])) for on in (False, True)
    )
    inside = replace(whole, nodes=1, tensor_parallel=8, micro_batch=64, global_batch=64)
    near, apart = (
        exchanges(columns_of([replace(inside, sequence_parallel=on)])) for on in (False, True)
    )

    assert two["tensor forward"].inter_bytes == pytest.approx(one["tensor forward"].inter_bytes)
    assert 1.2 < apart["tensor forward"].intra_s[0] / near["tensor forward"].intra_s[0] < 1.5


@pytest.mark.parametrize(
    ("changes", "gathers", "reduces"),
    [
        ({}, 32, 16),
        ({"reshard_after_forward": False}, 16, 16),
        ({"sync_every_micro_batch": False}, 32, 16),
        ({"global_batch": 64}, 16, 8),
    ],
)
def test_fsdp_gathers_a_layer_twice_a_pass(changes, gathers, reduces) -> None:
    """Source: Zhao et al. 2023, section 3.3; two micro-batches of eight layers."""
    each = case(**{"strategy": "fsdp", "global_batch": 128, **changes})
    found = counted(each, "gather forward") + counted(each, "gather backward")

    assert (found, counted(each, "reduce")) == (gathers, reduces)


def test_hybrid_sharding_gathers_inside_a_node_only() -> None:
    costs = exchanges(columns_of([case(strategy="hsdp", gradient_bytes=2)]))
    layer = columns_of([BASE]).shapes.layer_params[0]

    assert costs["gather forward"].inter_bytes[0] == 0
    assert costs["reduce"].inter_bytes[0] == 0
    # Two nodes: each sends 2(m−1)/m of the gradients, its eight ranks an eighth each.
    assert costs["replicate"].inter_bytes[0] == pytest.approx(2 * layer)


def test_buckets_are_as_many_as_the_gradients_fill() -> None:
    each = case(gradient_bytes=4, bucket_bytes=25 * 2**20)
    total = 8 * 4 * columns_of([each]).shapes.layer_params[0]

    assert counts(columns_of([each]))["buckets"][0] == np.ceil(total / (25 * 2**20))


def test_lora_gathers_all_and_reduces_little() -> None:
    """Frozen weights are sharded too. Source: Hu et al. 2022, on what is trained."""
    full, lora = (exchanges(columns_of([case(strategy="fsdp", lora=on)])) for on in (False, True))

    assert lora["gather forward"].inter_bytes[0] == full["gather forward"].inter_bytes[0]
    assert lora["reduce"].inter_bytes[0] < 0.02 * full["reduce"].inter_bytes[0]


def test_int4_weights_are_gathered_as_int4() -> None:
    full, int4 = (
        exchanges(columns_of([case(strategy="fsdp", lora=True, quantized_base=on)]))
        for on in (False, True)
    )

    ratio = int4["gather forward"].inter_bytes[0] / full["gather forward"].inter_bytes[0]
    assert 0.25 <= ratio < 0.27


def test_experts_are_spread_and_attention_is_not() -> None:
    whole, spread = (columns_of([case(model=MIXTRAL, expert_parallel=ranks)]) for ranks in (1, 8))
    attention = whole.shapes.attention_params[0]
    experts = whole.shapes.layer_params[0] - attention

    assert local_layer(whole)[0] == pytest.approx(attention + experts)
    assert local_layer(spread)[0] == pytest.approx(attention + experts / 8)
    assert exchanges(whole)["expert forward"].intra_s[0] == 0
    assert exchanges(spread)["expert forward"].intra_s[0] > 0


def test_experts_are_spread_over_context_ranks_first() -> None:
    """Where they are neighbours, as Megatron numbers the ranks of its experts."""
    on_one = case(model=MIXTRAL, nodes=1, data_parallel=1, tensor_parallel=4, context_parallel=2)
    columns = columns_of([replace(on_one, expert_parallel=2, strategy="megatron", fabric=Fabric())])

    cost = exchanges(columns)["expert forward"]
    assert (cost.inter_s[0], cost.inter_bytes[0]) == (0, 0)
    assert cost.intra_s[0] > 0


def test_context_ranks_hand_on_keys_and_values() -> None:
    """Everybody's but its own, both of hidden width here: (n−1) · 2 · tokens · hidden · 2 bytes."""
    columns = columns_of([case(strategy="fsdp", data_parallel=1, context_parallel=16)])
    cost = exchanges(columns)["context forward"]

    assert cost.inter_bytes[0] == pytest.approx(15 * 2 * 4 * 1024 / 16 * 1024 * 2)


def test_stages_hand_on_activations_both_ways() -> None:
    piped = case(
        strategy="megatron", nodes=4, data_parallel=8, pipeline_parallel=4, global_batch=4 * 8 * 8
    )
    (found,) = predict([piped])
    message = 4 * 1024 * 1024 * 2

    # Eight ranks of a node between two others, eight micro-batches, forward and backward.
    assert found.network_bytes == pytest.approx(8 * 8 * 2 * message)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "hsdp", "megatron"])
def test_every_strategy_reduces_the_gradients_of_its_stages(strategy: SplitStrategy) -> None:
    """At least 2(n−1)/n of a node's gradients, on two nodes for each of two stages."""
    piped = case(
        strategy=strategy, nodes=4, data_parallel=16, pipeline_parallel=2, global_batch=4 * 16 * 8
    )
    piped = replace(piped, gradient_bytes=2)
    (found,) = predict([piped])
    of_a_stage = 2 * 8 * columns_of([BASE]).shapes.layer_params[0] / 2

    assert found.network_bytes > 2 * 15 / 16 * of_a_stage
    assert found.parts.exposed_network_s > 0


def test_a_long_pipeline_hides_no_less_than_nothing() -> None:
    """Folded ones extrapolate from two short ones."""
    fabric = Fabric(transport="tcp", node_gbps=10)
    piped = case(
        strategy="megatron", data_parallel=8, pipeline_parallel=2, global_batch=4 * 8 * 64,
        model=MIXTRAL, expert_parallel=4, fabric=fabric, zero_stage=2,
    )  # fmt: skip
    (found,) = predict([piped])

    assert found.overlapped_communication_s >= 0


def test_gradients_are_summed_over_context_ranks_too() -> None:
    """Each saw a part of the sequence; as many bytes leave a node as without."""
    plain = case(gradient_bytes=2)
    split = replace(plain, data_parallel=8, context_parallel=2, global_batch=32)
    of_plain, of_split = (exchanges(columns_of([each]))["last bucket"] for each in (plain, split))

    assert of_split.inter_bytes[0] == pytest.approx(of_plain.inter_bytes[0])


def test_two_stages_of_a_node_hand_on_over_the_network_too() -> None:
    """Four stages of four tensor ranks on two nodes: the middle boundary is between the nodes."""
    piped = case(
        strategy="megatron",
        data_parallel=1,
        tensor_parallel=4,
        pipeline_parallel=4,
        global_batch=32,
    )
    costs = exchanges(columns_of([piped]))["boundary"]
    inside = exchanges(columns_of([replace(piped, nodes=1, tensor_parallel=2)]))["boundary"]

    assert costs.inter_bytes[0] == pytest.approx(4 * 1024 * 1024 * 2)
    assert costs.inter_s[0] > costs.intra_s[0] == 0
    assert inside.inter_s[0] == 0 < inside.intra_s[0]


def test_offloaded_states_are_sharded_unless_told_otherwise() -> None:
    fabric = Fabric(transport="infiniband", node_gbps=200)
    whole = case(strategy="megatron", framework="megatron-deepspeed", fabric=fabric)
    offloaded = replace(whole, cpu_offload=True)

    assert exchanges(columns_of([whole]))["gather forward"].inter_s[0] == 0
    assert exchanges(columns_of([offloaded]))["gather forward"].inter_s[0] > 0
    assert (
        exchanges(columns_of([replace(offloaded, zero_stage=1)]))["gather forward"].inter_s[0] == 0
    )


@pytest.mark.parametrize("strategy", ["ddp", "megatron", "fsdp", "hsdp"])
def test_gradients_of_experts_are_reduced_among_their_holders(strategy: SplitStrategy) -> None:
    """With as many expert as data ranks nobody else has them: only what all share is sent."""
    whole = case(model=MIXTRAL, strategy=strategy, gradient_bytes=2, gpus_per_node=4)
    whole = replace(whole, data_parallel=8, zero_stage=None)
    alone = columns_of([replace(whole, expert_parallel=8)])
    shapes = alone.shapes
    dense = 8 * shapes.attention_params[0]

    def sent(each: TrainingCase) -> float:
        """Of all layers, both ways of reducing."""
        costs = exchanges(columns_of([each]))
        of_layers = ["reduce", "replicate"]
        of_step = sum(costs[name].inter_bytes[0] for name in ("first bucket", "all gradients"))
        number = counts(columns_of([each]))["buckets"][0]
        of_step += number * costs["bucket"].inter_bytes[0] + costs["last bucket"].inter_bytes[0]
        return of_step + 8 * sum(costs[name].inter_bytes[0] for name in of_layers)

    tables = 0 if strategy in ("fsdp", "hsdp") else shapes.embedding_params[0]
    ways = {"fsdp": 7 / 8, "hsdp": 1.0}.get(strategy, 2 * 7 / 8)
    assert sent(replace(whole, expert_parallel=8)) == pytest.approx(
        ways * 2 * (dense + tables), rel=0.01
    )
    assert sent(whole) > ways * 2 * (5 * dense + tables)


def test_sharded_experts_are_gathered_among_their_holders() -> None:
    """Four expert ranks of sixteen: each expert is on four, on both nodes."""
    each = case(model=MIXTRAL, strategy="fsdp", expert_parallel=4)
    columns = columns_of([each])
    group = group_of("expert shard", columns)
    cost = exchanges(columns)["gather forward"]
    experts = columns.shapes.expert_params[0] / 4

    assert (group.ranks[0], group.nodes[0], group.groups_per_node[0]) == (4, 2, 4)
    expected = 15 / 16 * columns.shapes.attention_params[0] + 4 * 3 / 4 * experts
    assert cost.inter_bytes[0] == pytest.approx(2 * expected)


def test_experts_of_hybrid_shards_are_all_replicated() -> None:
    """More expert ranks than a node has: none to shard with, the same ones on other nodes."""
    each = case(model=MIXTRAL, strategy="hsdp", nodes=4, data_parallel=32, expert_parallel=16)
    columns = columns_of([each])

    assert group_of("expert shard", columns).ranks[0] == 1
    assert group_of("expert replica", columns).ranks[0] == 2


@pytest.mark.parametrize("stages", [1, 2])
def test_keys_and_values_are_handed_on_beside_the_compute(stages: int) -> None:
    """With stages and without: a ring that takes less than its layer costs nothing."""
    split = case(
        strategy="megatron", nodes=stages, data_parallel=1, context_parallel=8, seq_len=2**16,
        pipeline_parallel=stages, micro_batch=1, global_batch=16, recompute="full",
    )  # fmt: skip
    costs = exchanges(columns_of([split]))
    handed_on_s = 8 / stages * 32 * costs["context forward"].intra_s[0]
    reduced_s = costs["all gradients"].intra_s[0]
    (found,) = predict([split])

    assert handed_on_s > 0.1 * reduced_s
    assert found.parts.exposed_intra_node_s == pytest.approx(reduced_s, rel=0.02)
