"""Between which ranks does a pairwise trial send, and how fast was each pair?"""

import itertools
from collections.abc import Sequence

from broadgauge.specs.op_rows import AnyOpRow, MessageRow, OpRow

RankPair = tuple[int, int]
"""From rank, to rank."""


def ends_of(nodes: int, ranks_per_node: int) -> tuple[int, ...]:
    """Which ranks send and receive? The first of each node; on one node all of its ranks."""
    if nodes == 1:
        return tuple(range(ranks_per_node))
    return tuple(range(0, nodes * ranks_per_node, ranks_per_node))


def ordered_pairs(nodes: int, ranks_per_node: int) -> tuple[RankPair, ...]:
    """Every end with every other, each direction by itself."""
    return tuple(itertools.permutations(ends_of(nodes, ranks_per_node), 2))


def largest_of_pairs(rows: Sequence[OpRow]) -> dict[RankPair, MessageRow]:
    """The largest message of each pair, in the first data type; empty: no pairwise trial."""
    pairs = [row for row in rows if isinstance(row, MessageRow)]
    if not pairs:
        return {}
    first = [row for row in pairs if row.dtype == pairs[0].dtype]
    largest_bytes = max(row.size_bytes for row in first)
    return {(row.from_rank, row.to_rank): row for row in first if row.size_bytes == largest_bytes}


def pair_rate_gbyte_per_s(row: AnyOpRow) -> float:
    """How fast was this pair? The message over its median time: one hiccup is not a slow cable."""
    return row.size_bytes / row.typical_s / 1e9
