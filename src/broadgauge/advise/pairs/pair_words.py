"""How are slow nodes, pairs and groups worded? The same for one trial and for a case."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from broadgauge.messages.pair_order import RankPair
from broadgauge.specs.case import Case

MOST_NAMED = 3
"""In one sentence; the matrix and the evidence show more."""


def end_name(case: Case, rank: int) -> str:
    """`node 1`, by its first rank; on one node `rank 1`."""
    return f"{_place(case)} {_number(case, rank)}"


def pair_name(case: Case, pair: RankPair) -> str:
    """`node 1 to node 3`."""
    return f"{end_name(case, pair[0])} to {end_name(case, pair[1])}"


def pair_names(case: Case, pairs: Iterable[RankPair]) -> dict[RankPair, str]:
    """`node 1 to node 3 and back`: both directions in one, by whichever of them came first."""
    directions: dict[RankPair, list[RankPair]] = defaultdict(list)
    for a, b in pairs:
        directions[min(a, b), max(a, b)].append((a, b))
    return {
        both[0]: pair_name(case, min(both)) + (" and back" if len(both) == 2 else "")
        for both in directions.values()
    }


def between_groups(case: Case, groups: Sequence[Collection[int]]) -> str:
    """`the links between nodes {0, 1} and {2, 3}`."""
    sets = [
        f"{{{', '.join(str(number) for number in sorted(_number(case, end) for end in group))}}}"
        for group in groups
    ]
    return f"the links between {_place(case)}s {', '.join(sets[:-1])} and {sets[-1]}"


def what_groups_share(case: Case) -> str:
    """The likeliest thing, in two words."""
    return "an uplink" if case.nodes > 1 else "two sockets or PCIe switches"


def slow_end(case: Case, end: int, *, sends: bool, receives: bool) -> str:
    """`node 1 sends and receives slowly`."""
    verb = "sends and receives" if sends and receives else "sends" if sends else "receives"
    return f"{end_name(case, end)} {verb} slowly"


def first_parts(parts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(parts) - MOST_NAMED
    return "; ".join(parts[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _place(case: Case) -> str:
    return "node" if case.nodes > 1 else "rank"


def _number(case: Case, rank: int) -> int:
    return rank // case.ranks_per_node if case.nodes > 1 else rank
