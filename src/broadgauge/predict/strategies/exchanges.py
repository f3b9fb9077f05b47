"""What does a step of each case send, and among whom? Every collective of its strategy, priced.

One name, one purpose; programs run them by name. A case that has no such collective has zeros.
"""

from dataclasses import replace

import numpy as np

from broadgauge.predict.columns import Columns, Flags, zero_stage
from broadgauge.predict.costs import CollectiveCost
from broadgauge.predict.groups import group_of
from broadgauge.predict.kernels import HBM_EFFICIENCY
from broadgauge.predict.network import price
from broadgauge.predict.timeline import Times

FIRST_BUCKET_BYTES = 2.0**20
BUCKET_BYTES = 25 * 2.0**20
"""Source: torch.nn.parallel.DistributedDataParallel, `bucket_cap_mb` and the first bucket's cap."""
ADAPTER_RATIO = 0.01
"""LoRA's parameters over the model's. Source: Hu et al. 2022 (arXiv 2106.09685), table 4: 0.01 to
0.2 % on attention alone; ranks of 16 to 64 on every linear layer give 0.5 to 2 %."""
INT4_BYTES = 0.5 + 4.0 / 64 / 4
"""With a scale of 8 bits for 64 weights. Source: Dettmers et al. 2023 (arXiv 2305.14314), 3."""


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
    Rajbhandari et al. 2020 (arXiv 1910.02054), section 5.2; Zhao et al. 2023, section 4.3.2.
    """
    is_interleaved = (columns.virtual_stages > 1) & (columns.pipeline_parallel > 1)
    rounds = np.where(is_interleaved, columns.pipeline_parallel, 1.0)
    is_split = np.array([zero_stage(case) == 2 for case in columns.cases])
    said = np.array([case.sync_every_micro_batch for case in columns.cases], dtype=np.float64)
    return {
        "layers": columns.shapes.layers,
        "micro_batches": np.ceil((columns.micro_batches - 1e-6) / rounds) * rounds,
        "buckets": _buckets(columns)[0],
        "reduces_each": np.where(np.isnan(said), columns.is_sharded | is_split, said),
    }


def weight_bytes(columns: Columns) -> Times:
    """Of one gathered weight."""
    half = np.where(columns.is_fp32 | (columns.element_bytes > 2), 4.0, 2.0)
    return np.where(columns.is_quantized, INT4_BYTES, half)


def gradient_bytes(columns: Columns) -> Times:
    """Of one reduced gradient: what the case says, else the framework's habit."""
    of_frameworks = [
        np.nan if framework.gradient_bytes is None else float(framework.gradient_bytes)
        for framework in columns.frameworks
    ]
    habit = np.array(of_frameworks)[columns.framework_index]
    habit = np.where(np.isnan(habit) | (columns.element_bytes > 2), columns.element_bytes, habit)
    said = np.array([case.gradient_bytes for case in columns.cases], dtype=np.float64)
    return np.where(np.isnan(said), habit, said)


def local_layer(columns: Columns) -> Times:
    """Parameters of a layer on a rank before sharding: experts are spread, the rest is not."""
    shapes = columns.shapes
    experts = np.where(shapes.experts > 1, shapes.layer_params - shapes.attention_params, 0.0)
    rest = shapes.layer_params - experts
    return (rest + experts / columns.expert_parallel) / columns.tensor_parallel


def _trained(columns: Columns, params: Times) -> Times:
    """Of these parameters, those that have gradients."""
    return params * np.where(columns.is_lora, ADAPTER_RATIO, 1.0)


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
    shard, replica = group_of("shard", columns), group_of("replica", columns)
    each, root = local_layer(columns), shapes.embedding_params / columns.tensor_parallel
    width, gradient = weight_bytes(columns), gradient_bytes(columns)
    kept = [not case.reshard_after_forward or case.zero_stage in {1, 2} for case in columns.cases]
    gather = _masked(price("all_gather", each * width, shard, columns), is_sharded)
    costs = {
        "gather forward": gather,
        "gather backward": _masked(gather, ~np.array(kept)),
        "gather root": _masked(price("all_gather", root * width, shard, columns), is_sharded),
    }
    for suffix, params in (("", each), (" root", root)):
        reduced = _trained(columns, params) * gradient
        scatter = price("reduce_scatter", reduced, shard, columns)
        costs[f"reduce{suffix}"] = _masked(scatter, is_sharded)
        again = price("all_reduce", reduced / shard.ranks, replica, columns)
        costs[f"replicate{suffix}"] = _masked(again, is_sharded & columns.is_replicated_shard)
    return costs


def _overlaps(columns: Columns) -> Flags:
    """Are whole gradients reduced beside the backward pass? A pipeline does it at the end."""
    habit = np.array([framework.overlaps_gradients for framework in columns.frameworks])
    is_ddp = np.array([case.strategy == "ddp" for case in columns.cases])
    return np.asarray(habit[columns.framework_index] & is_ddp & (columns.pipeline_parallel == 1))


def _local_gradients(columns: Columns) -> tuple[Times, Times]:
    """Bytes of a rank's gradients: of one layer, and of the embedding (once)."""
    split = columns.tensor_parallel
    shapes, width = columns.shapes, gradient_bytes(columns)
    each = _trained(columns, local_layer(columns))
    table = _trained(
        columns, np.minimum(shapes.vocabulary * shapes.hidden, shapes.embedding_params)
    )
    return each * width, table / split * width


def _is_untied(columns: Columns) -> Flags:
    """Is the head a table of its own, whose gradients come first?"""
    shapes = columns.shapes
    return np.asarray(shapes.embedding_params > 1.5 * shapes.vocabulary * shapes.hidden)


def _first_bucket(columns: Columns) -> Times:
    """Bytes: the head, or else the layers' first MiB. Of layers none, where a cap is given."""
    each, table = _local_gradients(columns)
    is_capped = np.array([case.bucket_bytes is not None for case in columns.cases])
    small = np.where(is_capped, 0.0, np.minimum(FIRST_BUCKET_BYTES, each * columns.shapes.layers))
    return np.where(_is_untied(columns), table, small)


def _buckets(columns: Columns) -> tuple[Times, Times]:
    """How many buckets do the layers' gradients fill, and how large is one?

    A parameter is never cut, so a bucket is no smaller than the layer's largest matrix. What is in
    the first one is not in these.
    """
    each, _ = _local_gradients(columns)
    shapes = columns.shapes
    matrix = each * shapes.hidden * shapes.ffn_hidden / shapes.layer_params
    said = np.array([case.bucket_bytes for case in columns.cases], dtype=np.float64)
    cap = np.maximum(np.where(np.isnan(said), BUCKET_BYTES, said), matrix)
    total = each * shapes.layers
    number = np.maximum(1.0, np.ceil(total / cap))
    early = np.where(_is_untied(columns), 0.0, _first_bucket(columns))
    return number, (total - early) / number


def bucket_copies_s(columns: Columns) -> tuple[Times, Times]:
    """Seconds in which a bucket is filled from its gradients, and all are copied back: DDP does.

    Source: torch/csrc/distributed/c10d/reducer.cpp, mark_variable_ready_dense and
    finalize_bucket_dense, unless gradient_as_bucket_view is set, which is not the default.
    """
    each, table = _local_gradients(columns)
    _, bucket = _buckets(columns)
    is_copied = _overlaps(columns) & ~columns.is_sharded & (columns.data_parallel > 1)
    moved_s = np.where(is_copied, 2.0, 0.0) / (HBM_EFFICIENCY * columns.memory_rate)
    return bucket * moved_s, (each * columns.shapes.layers + table) * moved_s


def _of_replicas(columns: Columns) -> dict[str, CollectiveCost]:
    """DDP and Megatron's data parallelism: gradients in buckets, or all at the end.

    Shards of a pipeline's stage are gathered once a step and reduced at its end. Source:
    pytorch/torchtitan, `fsdp_reshard_after_forward: default`: not with pipeline stages, so that no
    micro-batch gathers again.
    """
    shapes, group = columns.shapes, group_of("data", columns)
    is_piped = columns.pipeline_parallel > 1
    is_whole, is_early = ~columns.is_sharded | is_piped, _overlaps(columns)
    stage = np.array([zero_stage(case) for case in columns.cases])
    is_split = (stage == 1) | (stage == 2) | columns.is_sharded
    each, table = _local_gradients(columns)
    twice = _is_untied(columns)
    _, bucket = _buckets(columns)
    stages = columns.pipeline_parallel
    rest = each * shapes.layers / stages + table * np.where(twice & (stages == 1), 2.0, 1.0)
    first = _first_bucket(columns)

    def reduced(message: Times, mask: Flags) -> CollectiveCost:
        split = price("reduce_scatter", message, group, columns)
        whole = price("all_reduce", message, group, columns)
        return _chosen(is_split, split, whole, is_whole & mask)

    is_frozen = columns.is_sharded & columns.is_lora  # gathered, though nothing of it is reduced
    gathered = rest / np.where(is_frozen, ADAPTER_RATIO, 1.0)
    weights = gathered / gradient_bytes(columns) * weight_bytes(columns)
    return {
        "first bucket": reduced(first, is_early),
        "bucket": reduced(bucket, is_early),
        "last bucket": reduced(table, is_early),
        "all gradients": reduced(rest, ~is_early),
        "weights": _masked(price("all_gather", weights, group, columns), is_whole & is_split),
    }


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
    again = np.where(columns.is_full_recompute, 1.0, 0.0)
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
    halves = CollectiveCost(
        intra_s=scatter.intra_s + gather.intra_s,
        inter_s=scatter.inter_s + gather.inter_s,
        inter_bytes=scatter.inter_bytes + gather.inter_bytes,
    )
    whole = price("all_reduce", message, group, columns)
    return _chosen(columns.is_sequence_parallel, halves, whole, np.ones(len(columns), np.bool_))


def _of_stages(columns: Columns) -> dict[str, CollectiveCost]:
    """b·s·h over every boundary of stages, in both directions.

    Each tensor-parallel rank sends its part, which is gathered again inside the node. Source:
    Narayanan et al. 2021 (arXiv 2104.04473), sections 2.2 and 4.1.
    """
    message = columns.tokens * columns.shapes.hidden * columns.element_bytes
    part = message / columns.tensor_parallel
    return {"boundary": price("send_recv", part, group_of("pipeline", columns), columns)}
