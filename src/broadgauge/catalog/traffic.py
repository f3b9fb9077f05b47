"""How many bytes of one collective must cross a node's link, and how many does Gloo send?

A node's bytes are those of its busier direction. S is the size as nccl-tests defines it
(merging/definitions.py), n the ranks, r the ranks a node; ranks are numbered node by
node. What NCCL sends depends on the algorithm it chose and is read from counters only.
"""

from collections import Counter
from collections.abc import Iterator

from broadgauge.catalog.busbw import bus_factor
from broadgauge.messages.rank import RankGroup
from broadgauge.messages.vocabulary import CollectiveOp


def ring_node_bytes(
    op: CollectiveOp, ranks: int, size_bytes: float, *, ranks_per_node: int = 1
) -> float:
    """How many bytes leave (and enter) a node in one ring over all ranks?

    A ring that visits node after node leaves each node once, however many ranks the node has, and
    every link of the ring carries the factor's share of S: 2(n−1)/n·S for all_reduce, S for a
    broadcast or reduction forwarded from rank to rank. Hierarchical algorithms can do with less,
    several rings with each its part of S carry the same sum. all_to_all is no ring: each of a
    node's r ranks sends S/n to each of the n − r ranks elsewhere, and nothing can do with less.
    Source: Patarasuk and Yuan 2009 (bandwidth optimal all-reduce), per link of the ring.
    """
    if op == "all_to_all":
        return ranks_per_node * (ranks - ranks_per_node) / ranks * size_bytes
    return bus_factor(op, ranks) * size_bytes


def grouped_node_bytes(
    op: CollectiveOp, group: RankGroup, ranks: int, size_bytes: float, *, ranks_per_node: int = 1
) -> float:
    """How many bytes leave the busiest node when each of the world's groups makes it as a ring?

    Groups inside a node send nothing out of it. Each other group leaves each of its nodes as a ring
    of its own: with 4 ranks a node, gradients that the first ranks of two nodes reduce, and the
    second, …, cross the link as four rings of two.
    """
    leaving = [0.0] * (-(-ranks // ranks_per_node))
    for members in groups_of(group, ranks):
        on_node = Counter(rank // ranks_per_node for rank in members)
        if len(on_node) > 1:
            for node, here in on_node.items():
                leaving[node] += ring_node_bytes(op, group.size, size_bytes, ranks_per_node=here)
    return max(leaving)


def groups_of(group: RankGroup, ranks: int) -> Iterator[range]:
    """The ranks of each group, in blocks of `size x stride` ranks."""
    block = group.size * group.stride
    for first in range(0, ranks, block):
        for offset in range(first, first + group.stride):
            yield range(offset, first + block, group.stride)


def gloo_node_bytes(
    op: CollectiveOp, ranks: int, size_bytes: float, *, ranks_per_node: int = 1
) -> float:
    """How many bytes cross the busiest node's link when Gloo does it?

    The ring's, but: reduce_scatter is a whole all_reduce of which each rank keeps its part;
    broadcast is a binomial tree, whose root sends S to log2(n) others; reduce is a ring's
    reduce-scatter, after which all send their parts to the root: 2(n−1)/n·S into it.
    Source: torch 2.11 ProcessGroupGloo and pytorch/gloo, broadcast.cc and reduce.cc; counted on the
    wire by tests/e2e/test_slow_pair.py and tests/probes/test_wire_bytes.py.
    """
    match op:
        case "reduce_scatter":
            return ring_node_bytes("all_reduce", ranks, size_bytes)
        case "broadcast":
            return _tree_crossings(ranks, ranks_per_node) * size_bytes
        case "reduce":
            gathered = (ranks - ranks_per_node) / ranks
            return ((ranks - 1) / ranks + gathered) * size_bytes
        case _:
            return ring_node_bytes(op, ranks, size_bytes, ranks_per_node=ranks_per_node)


def _tree_crossings(ranks: int, ranks_per_node: int) -> int:
    """How many messages leave the busiest node of a binomial tree from rank 0?

    In round i each rank below 2^i sends to the one 2^i further on.
    """
    leaving = dict.fromkeys(range(ranks // ranks_per_node), 0)
    distance = 1
    while distance < ranks:
        for sender in range(min(distance, ranks - distance)):
            node = sender // ranks_per_node
            if (sender + distance) // ranks_per_node != node:
                leaving[node] += 1
        distance *= 2
    return max(leaving.values())
