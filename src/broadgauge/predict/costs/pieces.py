"""What does each piece of a step cost? The types between compute.py, network costs and strategies.

All arrays are `float64[cases]`, of one rank with its share of tensor- and context-parallel work.
"""

from dataclasses import dataclass
from typing import Literal

from broadgauge.predict.facts.arrays import Times

GroupKind = Literal[
    "data",
    "shard",
    "replica",
    "tensor",
    "pipeline",
    "context",
    "expert",
    "expert data",
    "expert shard",
    "expert replica",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCosts:
    """Kernel and launch times of a micro-batch (layers) and of a step (the rest).

    `_launch_s` is what the CPU needs to launch that piece; the GPU's time is beside it. A layer
    lasts as long as the longer of the two, which the timeline finds out.
    """

    layer_forward_s: Times
    layer_backward_s: Times
    """Without recomputation."""
    layer_recompute_s: Times
    layer_forward_launch_s: Times
    layer_backward_launch_s: Times
    layer_recompute_launch_s: Times
    head_forward_s: Times
    """Embedding, final norm, head and loss."""
    head_backward_s: Times
    head_forward_launch_s: Times
    head_backward_launch_s: Times
    optimizer_s: Times
    """Clipping and the update, once a step, of this rank's share."""
    optimizer_launch_s: Times
    step_fixed_s: Times
    """Host work of a step that hides nothing: loader, loss read back."""
    memory_bound_ratio: Times
    """Share of the kernels' time that memory bounds."""
    overlap_slowdown_ratio: Times
    """By how much communication beside it stretches compute; 0: not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveGroup:
    """Which ranks take part in a collective, as seen from one node. Arrays, one entry a case."""

    kind: GroupKind
    ranks: Times
    """In all."""
    nodes: Times
    """That it spans; 1: it stays inside."""
    ranks_per_node: Times
    """Of one group."""
    groups_per_node: Times
    """That work at the same time and share the node's NICs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveCost:
    """How long one collective occupies the links inside a node, and those between nodes.

    The slower of both decides; each occupies its own stream so that others may use the other.
    """

    intra_s: Times
    inter_s: Times
    inter_bytes: Times
    """What a node sends to other nodes."""
