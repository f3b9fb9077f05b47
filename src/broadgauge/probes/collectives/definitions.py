"""What do algbw, busbw and a ring's bytes mean? The definitions of nccl-tests, and nothing else.

Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the `GetBw` functions of src/*.cu. The size S is
the total: count x type for all_reduce, count x ranks x type for all_gather and reduce_scatter.
"""

from broadgauge.specs.workload import CollectiveOp

BARRIER = "barrier"
"""The `op` of the block that tells what the barriers between the iterations cost on the wire."""


def bus_factor(op: CollectiveOp, ranks: int) -> float:
    """What makes busbw of algbw? The share of S that each rank must send, in a ring.

    2(n−1)/n for all_reduce, (n−1)/n for all_gather and reduce_scatter.
    Source: nccl-tests, src/all_reduce.cu, all_gather.cu, reduce_scatter.cu.
    """
    crossings = 2 if op == "all_reduce" else 1
    return crossings * (ranks - 1) / ranks


def algbw_gbyte_per_s(size_bytes: float, time_s: float) -> float:
    """How many bytes of the operation's size per second? S / t."""
    return size_bytes / time_s / 1e9


def busbw_gbyte_per_s(op: CollectiveOp, ranks: int, size_bytes: float, time_s: float) -> float:
    """How fast must each rank's busiest link have been at least, by a ring? algbw x factor."""
    return algbw_gbyte_per_s(size_bytes, time_s) * bus_factor(op, ranks)


def ring_node_bytes(op: CollectiveOp, ranks: int, size_bytes: float) -> float:
    """How many bytes leave (and enter) a node in one ring over all ranks?

    A ring that visits node after node leaves each node once, however many ranks the node has, and
    every link of the ring carries the factor's share of S: 2(n−1)/n·S for all_reduce. Hierarchical
    algorithms can do with less, several rings with each its part of S carry the same sum.
    Source: Patarasuk and Yuan 2009 (bandwidth optimal all-reduce), per link of the ring.
    """
    return bus_factor(op, ranks) * size_bytes


def even_size_bytes(op: CollectiveOp, ranks: int, wanted_bytes: int, type_bytes: int) -> int:
    """Which size is measured? The wanted one, rounded down to whole elements and equal parts of
    the ranks; never less than one element (a rank)."""
    grain = type_bytes if op == "all_reduce" else type_bytes * ranks
    return max(wanted_bytes // grain, 1) * grain
