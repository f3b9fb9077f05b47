"""Are a node's bytes those of the algorithms played message by message?"""

from collections import Counter
from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.catalog.traffic import (
    gloo_node_bytes,
    grouped_node_bytes,
    groups_of,
    ring_node_bytes,
)
from broadgauge.messages.rank import RankGroup, group_of
from broadgauge.specs.workloads.workload import CollectiveOp

SHAPES = [(2, 1), (2, 4), (3, 2), (4, 1), (5, 1), (8, 1)]
OPS = st.sampled_from(get_args(CollectiveOp))
Message = tuple[int, int, float]
"""From rank, to rank, share of S."""


def ring(op: CollectiveOp, ranks: int) -> Iterator[Message]:
    """Chunks handed on around the ring; for all_to_all what each rank has for each other."""
    if op == "all_to_all":
        yield from ((a, b, 1 / ranks) for a in range(ranks) for b in range(ranks) if a != b)
    elif op in ("broadcast", "reduce"):
        yield from ((rank, rank + 1, 1.0) for rank in range(ranks - 1))
    elif op == "send_recv":
        yield from ((rank, (rank + 1) % ranks, 1.0) for rank in range(ranks))
    else:
        for _ in range((2 if op == "all_reduce" else 1) * (ranks - 1)):
            yield from ((rank, (rank + 1) % ranks, 1 / ranks) for rank in range(ranks))


def gloo(op: CollectiveOp, ranks: int) -> Iterator[Message]:
    """As gloo/broadcast.cc and reduce.cc do it."""
    if op == "broadcast":
        for bit in (2**i for i in range((ranks - 1).bit_length())):
            yield from ((a, a + bit, 1.0) for a in range(bit) if a + bit < ranks)
    elif op == "reduce":
        yield from ring("reduce_scatter", ranks)
        yield from ((rank, 0, 1 / ranks) for rank in range(1, ranks))
    else:
        yield from ring("all_reduce" if op == "reduce_scatter" else op, ranks)


def busiest(messages: Iterator[Message], ranks_per_node: int) -> float:
    """Of the busiest node in its busier direction."""
    crossing: Counter[tuple[int, str]] = Counter()
    for sender, receiver, share in messages:
        source, target = sender // ranks_per_node, receiver // ranks_per_node
        if source != target:
            crossing[source, "out"] += share
            crossing[target, "in"] += share
    return max(crossing.values())


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
@pytest.mark.parametrize("op", get_args(CollectiveOp))
def test_bytes_are_those_of_the_messages(op: CollectiveOp, nodes: int, ranks_per_node: int) -> None:
    ranks = nodes * ranks_per_node
    for formula, play in ((ring_node_bytes, ring), (gloo_node_bytes, gloo)):
        played = 1e6 * busiest(play(op, ranks), ranks_per_node)
        assert formula(op, ranks, 1e6, ranks_per_node=ranks_per_node) == pytest.approx(played)


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
@pytest.mark.parametrize(
    ("ranks", "ranks_per_node", "size", "stride"),
    [
        (4, 2, 2, 1),  # inside a node: nothing crosses
        (4, 2, 2, 2),  # the same rank of each node
        (16, 4, 4, 4),
        (16, 4, 8, 1),  # two nodes each
        (16, 4, 4, 2),  # every second rank of two nodes
        (8, 2, 8, 1),  # the world
    ],
)
def test_bytes_of_groups_are_those_of_their_messages(op, ranks, ranks_per_node, size, stride):
    group = RankGroup(size=size, stride=stride)
    played: Counter[tuple[int, str]] = Counter({(0, "out"): 0.0})
    for members in groups_of(group, ranks):
        for sender, receiver, share in ring(op, size):
            source, target = (members[end] // ranks_per_node for end in (sender, receiver))
            if source != target:
                played[source, "out"] += share
                played[target, "in"] += share
    counted = grouped_node_bytes(op, group, ranks, 1e6, ranks_per_node=ranks_per_node)
    assert counted == pytest.approx(1e6 * max(played.values()))


@pytest.mark.parametrize(
    ("members", "group"),
    [
        (range(8), None),
        (range(2, 4), RankGroup(size=2, stride=1)),
        ([1, 5], RankGroup(size=2, stride=4)),
        ([3], RankGroup(size=1, stride=1)),
    ],
)
def test_a_group_is_known_by_its_ranks(members, group):
    assert group_of(list(members), 8) == group


def test_ranks_at_unequal_distances_are_no_group():
    with pytest.raises(ValueError, match="unequal distances"):
        group_of([0, 1, 3], 8)


@given(OPS, st.integers(2, 8), st.integers(1, 8), st.floats(1, 1e12))
def test_gloo_never_sends_less_than_the_ring_but_where_it_is_a_tree(
    op: CollectiveOp, nodes: int, ranks_per_node: int, size_bytes: float
) -> None:
    ranks = nodes * ranks_per_node
    ring_bytes = ring_node_bytes(op, ranks, size_bytes, ranks_per_node=ranks_per_node)
    gloo_bytes = gloo_node_bytes(op, ranks, size_bytes, ranks_per_node=ranks_per_node)
    assert gloo_bytes >= ring_bytes * 0.999
    messages_of_a_node = ranks_per_node * (ranks - 1).bit_length()
    assert gloo_bytes <= ring_bytes * max(2, messages_of_a_node) * 1.001
