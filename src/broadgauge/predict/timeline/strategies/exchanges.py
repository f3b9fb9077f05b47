"""What does a step of each case send, and among whom? Every collective of its strategy, priced.

One name, one purpose; programs run them by name. A case that has no such collective has zeros.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from broadgauge.predict.case import Op
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.network import price
from broadgauge.predict.costs.pieces import CollectiveCost, GroupKind
from broadgauge.predict.facts.arrays import Flags, Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.element_sizes import gradient_bytes, weight_bytes
from broadgauge.predict.facts.zero_stage import zero_stage
from broadgauge.predict.timeline.strategies.buckets import (
    buckets,
    first_bucket,
    is_untied,
    local_gradients,
    local_layer,
    loose_gradients,
    overlaps,
    spread_share,
    trained_in_layer,
    trained_outside,
)


def exchanges(columns: Columns) -> dict[str, CollectiveCost]:
    """Every collective by its purpose."""
    return {
        **_of_shards(columns),
        **_of_replicas(columns),
        **_of_layers(columns),
        **_of_stages(columns),
    }


def counts(columns: Columns) -> dict[str, Times]:
    """How often programs turn their loops; whole numbers.

    Interleaved stages take micro-batches in rounds of as many as there are stages. Source:
    NVIDIA/Megatron-LM, schedules.py, which refuses other numbers.
    Sharded gradients are reduced in each micro-batch: no rank could hold them whole. Source:
    Rajbhandari et al. 2020 (arXiv 1910.02054), section 5.2; Zhao et al. 2023, section 4.3.2. One
    that keeps both gradients and weights until the step's last backward pass gathers once a step.
    Source: probes/training/fsdp.py, `without_reduction`.
    """
    is_interleaved = (columns.virtual_stages > 1) & (columns.pipeline_parallel > 1)
    rounds = np.where(is_interleaved, columns.pipeline_parallel, 1.0)
    is_split = np.array([zero_stage(case) == 2 for case in columns.cases])
    said = np.array([case.sync_every_micro_batch for case in columns.cases], dtype=np.float64)
    keeps = [
        case.sync_every_micro_batch is False and not case.reshard_after_forward
        for case in columns.cases
    ]
    return {
        "layers": columns.shapes.layers,
        "stage_layers": columns.stage_layers,
        "micro_batches": np.ceil((columns.micro_batches - 1e-6) / rounds) * rounds,
        "buckets": buckets(columns)[0],
        "reduces_each": np.where(np.isnan(said), columns.is_sharded | is_split, said),
        "gathers_each": np.where(keeps, 0.0, 1.0),
    }


def _masked(cost: CollectiveCost, mask: Flags) -> CollectiveCost:
    return replace(
        cost,
        intra_s=np.where(mask, cost.intra_s, 0.0),
        inter_s=np.where(mask, cost.inter_s, 0.0),
        inter_bytes=np.where(mask, cost.inter_bytes, 0.0),
    )


def _of_shards(columns: Columns) -> dict[str, CollectiveCost]:
    """FSDP, HSDP and ZeRO-3: gathers of weights, reduce-scatters of gradients."""
    shapes, is_sharded = columns.shapes, columns.is_sharded
    shards = group_of("shard", columns).ranks, group_of("expert shard", columns).ranks
    each, root = local_layer(columns), shapes.outside_params / columns.tensor_parallel
    share, none = spread_share(columns), np.zeros(len(columns))
    width, gradient = weight_bytes(columns), gradient_bytes(columns)
    kept = [not case.reshard_after_forward or case.zero_stage in {1, 2} for case in columns.cases]
    padding = np.where(columns.is_lora, shapes.padded_adapters(shards[0]), 0.0)
    adapters = np.where(columns.is_lora, np.nan_to_num(shapes.adapter_params), 0.0) + padding
    weights = _parts((each + adapters / columns.tensor_parallel) * width, share)
    gather = _masked(_held("all_gather", weights, "shard", columns), is_sharded)
    roots = _parts(root * width, none)
    costs = {
        "gather forward": gather,
        "gather backward": _masked(gather, ~np.array(kept)),
        "gather root": _masked(_held("all_gather", roots, "shard", columns), is_sharded),
    }
    in_layer = trained_in_layer(columns) + padding / columns.tensor_parallel
    outside = trained_outside(columns, root)
    for suffix, trained, of_experts in (("", in_layer, share), (" root", outside, none)):
        reduced = _parts(trained * gradient, of_experts)
        scatter = _held("reduce_scatter", reduced, "shard", columns)
        costs[f"reduce{suffix}"] = _masked(scatter, is_sharded)
        shard = reduced[0] / shards[0], reduced[1] / shards[1]
        again = _held("all_reduce", shard, "replica", columns)
        costs[f"replicate{suffix}"] = _masked(again, is_sharded & columns.is_replicated_shard)
    return costs


def _of_replicas(columns: Columns) -> dict[str, CollectiveCost]:
    """DDP and Megatron's data parallelism: gradients in buckets, or all at the end.

    Shards of a pipeline's stage are gathered once a step and reduced at its end. Source:
    pytorch/torchtitan, `fsdp_reshard_after_forward: default`: not with pipeline stages, so that no
    micro-batch gathers again.
    """
    share = spread_share(columns)
    is_piped = columns.pipeline_parallel > 1
    is_whole, is_early = ~columns.is_sharded | is_piped, overlaps(columns)
    stage = np.array([zero_stage(case) for case in columns.cases])
    is_split = (stage == 1) | (stage == 2) | columns.is_sharded
    each, table = local_gradients(columns)
    loose = loose_gradients(columns)
    twice = is_untied(columns)
    _, bucket = buckets(columns)
    stages = columns.pipeline_parallel
    layers = each * columns.stage_layers
    rest = layers + loose + table * np.where(twice & (stages == 1), 2.0, 1.0)

    def reduced(message: Times, of_experts: Times, mask: Flags) -> CollectiveCost:
        parts = _parts(message, of_experts)
        split = _held("reduce_scatter", parts, "data", columns)
        whole = _held("all_reduce", parts, "data", columns)
        return _chosen(is_split, split, whole, is_whole & mask)

    is_frozen = columns.is_sharded & columns.is_lora  # gathered, though nothing of it is reduced
    gathered = rest / np.where(is_frozen, columns.shapes.adapter_ratio, 1.0)
    weights = gathered / gradient_bytes(columns) * weight_bytes(columns)
    gather = _held("all_gather", _parts(weights, share * layers / rest), "data", columns)
    return {
        "first bucket": reduced(first_bucket(columns), np.where(twice, 0.0, share), is_early),
        "bucket": reduced(bucket, share, is_early),
        "last bucket": reduced(table + loose, np.zeros(len(columns)), is_early),
        "all gradients": reduced(rest, share * layers / rest, ~is_early),
        "weights": _masked(gather, is_whole & is_split),
    }


def _parts(message: Times, of_experts: Times) -> tuple[Times, Times]:
    """Bytes of what every rank has, and of experts."""
    return message * (1.0 - of_experts), message * of_experts


def _held(
    op: Op, parts: tuple[Times, Times], kind: Literal["data", "shard", "replica"], columns: Columns
) -> CollectiveCost:
    """Both parts, each among the ranks that hold the same. Experts have groups of their own.

    Source: NVIDIA/Megatron-LM, parallel_state.py, expert-data-parallel groups.
    """
    experts: dict[str, GroupKind] = {
        "data": "expert data",
        "shard": "expert shard",
        "replica": "expert replica",
    }
    cost = price(op, parts[0], group_of(kind, columns), columns)
    if not parts[1].any():
        return cost
    return _added(cost, price(op, parts[1], group_of(experts[kind], columns), columns))


def _added(one: CollectiveCost, two: CollectiveCost) -> CollectiveCost:
    """One after the other."""
    return CollectiveCost(
        intra_s=one.intra_s + two.intra_s,
        inter_s=one.inter_s + two.inter_s,
        inter_bytes=one.inter_bytes + two.inter_bytes,
    )


def _chosen(choice: Flags, yes: CollectiveCost, no: CollectiveCost, mask: Flags) -> CollectiveCost:
    cost = CollectiveCost(
        intra_s=np.where(choice, yes.intra_s, no.intra_s),
        inter_s=np.where(choice, yes.inter_s, no.inter_s),
        inter_bytes=np.where(choice, yes.inter_bytes, no.inter_bytes),
    )
    return _masked(cost, mask)


def _times(cost: CollectiveCost, number: Times | float) -> CollectiveCost:
    return CollectiveCost(
        intra_s=cost.intra_s * number,
        inter_s=cost.inter_s * number,
        inter_bytes=cost.inter_bytes * number,
    )


def _of_layers(columns: Columns) -> dict[str, CollectiveCost]:
    """What the ranks that share a layer exchange within it.

    Tensor parallelism: two all-reduces of b·s·h forward, two backward, two more where the forward
    pass is repeated. Source: Shoeybi et al. 2019 (arXiv 1909.08053), section 3; with sequence
    parallelism a reduce-scatter and an all-gather each, of the same volume (Korthikanti et al.
    2022, section 4.2.2). Context parallelism hands on keys and values, and their gradients; expert
    parallelism sends tokens to their experts and back (Lepikhin et al. 2020, arXiv 2006.16668).
    """
    shapes = columns.shapes
    message = columns.tokens * shapes.hidden * columns.element_bytes
    again = columns.recomputed_ratio
    tensor = _tensor(columns, message)
    around = columns.context_parallel
    keys = shapes.qkv_width - shapes.attention_width
    kept = columns.tokens * keys * columns.element_bytes * around
    ring = price(
        "all_gather", kept / columns.tensor_parallel, group_of("context", columns), columns
    )
    routed = message * shapes.active_experts / columns.tensor_parallel
    expert = price("all_to_all", routed, group_of("expert", columns), columns)
    return {
        "tensor forward": _times(tensor, 2.0),
        "tensor backward": _times(tensor, 2.0 + 2.0 * again),
        "context forward": ring,
        "context backward": _times(ring, 2.0 + again),
        "expert forward": _times(expert, 2.0),
        "expert backward": _times(expert, 2.0 + 2.0 * again),
    }


def _tensor(columns: Columns, message: Times) -> CollectiveCost:
    """One exchange of tensor-parallel ranks. A switch that adds up helps an all-reduce alone."""
    group = group_of("tensor", columns)
    scatter = price("reduce_scatter", message, group, columns)
    gather = price("all_gather", message, group, columns)
    whole = price("all_reduce", message, group, columns)
    halves = _added(scatter, gather)
    return _chosen(columns.is_sequence_parallel, halves, whole, np.ones(len(columns), np.bool_))


def _of_stages(columns: Columns) -> dict[str, CollectiveCost]:
    """b·s·h over every boundary of stages, in both directions.

    Each tensor-parallel rank sends its part, which is gathered again inside the node. Source:
    Narayanan et al. 2021 (arXiv 2104.04473), sections 2.2 and 4.1.
    """
    message = columns.tokens * columns.shapes.hidden * columns.element_bytes
    part = message / columns.tensor_parallel
    return {"boundary": price("send_recv", part, group_of("pipeline", columns), columns)}
