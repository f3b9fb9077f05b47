"""Which ranks work together, and where do they sit? Tensor-parallel ranks are neighbours.

Ranks are numbered node by node; tensor parallelism varies fastest, then context, data and pipeline.
Source: NVIDIA/Megatron-LM, parallel_state.py, order tp-cp-ep-dp-pp; FSDP's device mesh has its last
dimension fastest too. Gradients are summed over context-parallel ranks too: each saw a part of the
sequence (the same file, `_DATA_PARALLEL_GROUP_WITH_CP`).
"""

import numpy as np

from broadgauge.predict.costs.pieces import CollectiveGroup, GroupKind
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns


def strided_group(
    kind: GroupKind, ranks: Times, stride: Times, gpus_per_node: Times
) -> CollectiveGroup:
    """A group of every `stride`-th rank: how much of it stands on one node?"""
    on_node = np.clip(np.floor(gpus_per_node / stride), 1.0, ranks)
    nodes = np.ceil(ranks / on_node)
    crowd = np.where(nodes > 1, gpus_per_node / on_node, 1.0)
    return CollectiveGroup(
        kind=kind, ranks=ranks, nodes=nodes, ranks_per_node=on_node, groups_per_node=crowd
    )


def group_of(kind: GroupKind, columns: Columns) -> CollectiveGroup:
    """The group of one kind in each case."""
    tensor, context = columns.tensor_parallel, columns.context_parallel
    inner = tensor * context
    one = np.ones(len(columns))
    sharers = columns.data_parallel * context
    inside = np.clip(np.floor(columns.gpus_per_node / tensor), 1.0, sharers)
    shards = np.where(columns.is_replicated_shard, inside, sharers)
    spread = columns.expert_parallel
    holders = np.maximum(1.0, shards / spread)
    """Ranks of a shard group that hold the same experts."""
    layout: dict[GroupKind, tuple[Times, Times]] = {
        "tensor": (tensor, one),
        "context": (context, tensor),
        "expert": (columns.expert_parallel, tensor),
        "data": (sharers, tensor),
        "shard": (shards, tensor),
        "replica": (sharers / shards, tensor * shards),
        "expert data": (np.maximum(1.0, sharers / spread), tensor * spread),
        "expert shard": (holders, tensor * spread),
        "expert replica": (
            np.maximum(1.0, sharers / spread / holders),
            tensor * spread * holders,
        ),
    }
    if kind == "pipeline":
        return _neighbours(columns, inner * columns.data_parallel)
    ranks, stride = layout[kind]
    return strided_group(kind, ranks, stride, columns.gpus_per_node)


def _neighbours(columns: Columns, stride: Times) -> CollectiveGroup:
    """Ranks of two stages, of those that stand farthest apart: the slowest hand-over decides.

    Where a node has several stages, the ranks of one of them share its NICs.
    """
    ranks = np.minimum(columns.pipeline_parallel, 2.0)
    is_across = columns.pipeline_parallel * stride > columns.gpus_per_node
    sharing = np.minimum(stride, columns.gpus_per_node)
    return CollectiveGroup(
        kind="pipeline",
        ranks=ranks,
        nodes=np.where(is_across, 2.0, 1.0),
        ranks_per_node=np.where(is_across, 1.0, ranks),
        groups_per_node=np.where(is_across, sharing, 1.0),
    )
