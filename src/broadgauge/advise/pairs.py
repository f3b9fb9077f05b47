"""Is one way between two nodes, or one node, slower than the others, over all launches?

The rule is that of a single trial (advise/slow_pairs.py), on the means over launches.
"""

from collections import defaultdict
from dataclasses import dataclass

from broadgauge.advise.slow_pairs import FEWEST_ENDS, slow_ways
from broadgauge.results.model import CaseSummary
from broadgauge.results.pairs import PairMatrix, pair_matrix
from broadgauge.specs.pairs import RankPair
from broadgauge.specs.units import show_bandwidth, show_ratio

MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPairs:
    """The ways of a case, which of them are slow, and that in words."""

    matrix: PairMatrix
    slow: frozenset[tuple[int, int]]
    """Origin and target, as the matrix counts them; all ways of a slow node."""
    words: str


def judged_pairs(summary: CaseSummary) -> JudgedPairs | None:
    """Which way is slow? None where no pairs were measured."""
    matrix = pair_matrix(summary)
    if matrix is None:
        return None
    if len(matrix.places) < FEWEST_ENDS:
        words = f"which of two ways is slow can't be told; {_slowest(matrix)}"
        return JudgedPairs(matrix=matrix, slow=frozenset(), words=words)
    places = {cell.ranks: place for place, cell in matrix.cells.items()}
    found = slow_ways({c.ranks: c.rate_gbyte_per_s.value for c in matrix.cells.values()})
    ends = {end: _place(matrix, end) for ways in places for end in ways}
    parts = [
        f"{ends[end]} {_verb(sends=end in found.senders, receives=end in found.receivers)} slowly"
        for end in sorted(found.senders | found.receivers)
    ]
    parts += _named(matrix, [places[ranks] for ranks in found.pairs])
    slow = {
        place
        for ranks, place in places.items()
        if ranks in found.pairs or ranks[0] in found.senders or ranks[1] in found.receivers
    }
    more = len(parts) - MOST_NAMED
    named = "; ".join(parts[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
    words = f"slow: {named}" if parts else f"no way is slow; {_slowest(matrix)}"
    return JudgedPairs(matrix=matrix, slow=frozenset(slow), words=words)


def _place(matrix: PairMatrix, rank: int) -> str:
    cell = next(cell for cell in matrix.cells.values() if rank in cell.ranks)
    return f"{matrix.place} {cell.origin if cell.ranks[0] == rank else cell.target}"


def _verb(*, sends: bool, receives: bool) -> str:
    return "sends and receives" if sends and receives else "sends" if sends else "receives"


def _named(matrix: PairMatrix, slow: list[RankPair]) -> list[str]:
    """`node 1 → 3 and back, 1.17 GB/s`: slowest first, both directions of a pair in one."""
    directions: dict[RankPair, list[RankPair]] = defaultdict(list)
    for origin, target in slow:
        directions[min(origin, target), max(origin, target)].append((origin, target))
    return [
        _way(matrix, both[0], " and back" if len(both) == 2 else "") for both in directions.values()
    ]


def _way(matrix: PairMatrix, way: RankPair, back: str = "") -> str:
    cell = matrix.cells[way]
    rate, part = cell.rate_gbyte_per_s.value, cell.over_median.value
    return (
        f"{matrix.place} {cell.origin} → {cell.target}{back}, {show_bandwidth(rate)}, "
        f"{show_ratio(part, 2)} of the median pair"
    )


def _slowest(matrix: PairMatrix) -> str:
    slowest = matrix.slowest
    return f"the slowest is {_way(matrix, (slowest.origin, slowest.target))}"
