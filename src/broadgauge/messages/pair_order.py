"""Between which ranks does a pairwise trial send?"""

import itertools

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
