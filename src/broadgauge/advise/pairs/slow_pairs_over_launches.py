"""Is one pair of nodes, or one node, slower than the others, over all launches?

The rule is that of a single trial (advise/pairs/slow_pairs.py), on the means over launches.
"""

from dataclasses import dataclass

from broadgauge.advise.limits import FEWEST_ENDS, SLOW_PAIR_RATIO
from broadgauge.advise.pairs.pair_words import (
    between_groups,
    first_parts,
    pair_name,
    pair_names,
    slow_end,
    what_groups_share,
)
from broadgauge.advise.pairs.slow_pairs import PairOutliers, outliers_of
from broadgauge.messages.pair_order import RankPair
from broadgauge.results.model import CaseSummary
from broadgauge.results.pair_summaries import PairCell, PairMatrix, pair_matrix
from broadgauge.specs.units import show_bandwidth, show_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPairs:
    """The pairs of a case, which of them are slow, and that in words."""

    matrix: PairMatrix
    slow: frozenset[tuple[int, int]]
    """Origin and target, as the matrix counts them; all pairs of a slow node."""
    fast_gbyte_per_s: float
    """Rate of the median fast pair: what slow pairs are slow against."""
    words: str


def judged_pairs(summary: CaseSummary) -> JudgedPairs | None:
    """Which pair is slow? None where no pairs were measured."""
    matrix = pair_matrix(summary)
    if matrix is None:
        return None
    cells = {cell.ranks: cell for cell in matrix.cells.values()}
    found = outliers_of({ranks: cell.rate_gbyte_per_s.value for ranks, cell in cells.items()})
    if len(matrix.places) < FEWEST_ENDS:
        slow: frozenset[tuple[int, int]] = frozenset()
        words = f"which of two directions is slow can't be told; {_slowest(matrix)}"
    else:
        slow = frozenset(
            (cell.origin, cell.target)
            for ranks, cell in cells.items()
            if ranks in found.pairs or ranks[0] in found.senders or ranks[1] in found.receivers
        )
        words = _words(matrix, found, cells)
    return JudgedPairs(
        matrix=matrix, slow=slow, fast_gbyte_per_s=found.fast_gbyte_per_s, words=words
    )


def _words(matrix: PairMatrix, found: PairOutliers, cells: dict[RankPair, PairCell]) -> str:
    """Slow nodes, then groups or pairs; of none whether the pairs are alike at all."""
    case = matrix.case
    parts = [
        slow_end(case, end, sends=end in found.senders, receives=end in found.receivers)
        for end in sorted(found.senders | found.receivers)
    ]
    if found.groups:
        between, share = between_groups(case, found.groups), what_groups_share(case)
        slowest = _against_fast(cells[found.pairs[0]], found)
        parts.append(f"{between} ({share}), the slowest {slowest}")
    else:
        parts += [
            f"{name}, {_against_fast(cells[pair], found)}"
            for pair, name in pair_names(case, found.pairs).items()
        ]
    if parts:
        return f"slow: {first_parts(parts)}"
    rates = {cell.rate_gbyte_per_s.value: ranks for ranks, cell in cells.items()}
    least, most = min(rates), max(rates)
    if least >= SLOW_PAIR_RATIO * most:
        return f"no pair is slow; {_slowest(matrix)}"
    return (
        f"the pairs differ, and none stands out: the slowest is {pair_name(case, rates[least])}, "
        f"{show_bandwidth(least)}, {show_ratio(least / most, 2)} of the fastest"
    )


def _against_fast(cell: PairCell, found: PairOutliers) -> str:
    rate = cell.rate_gbyte_per_s.value
    part = show_ratio(rate / found.fast_gbyte_per_s, 2)
    return f"{show_bandwidth(rate)}, {part} of the median fast pair"


def _slowest(matrix: PairMatrix) -> str:
    """By its part of the trials' medians, in which what slowed a whole trial cancels."""
    cell = matrix.slowest
    rate, part = show_bandwidth(cell.rate_gbyte_per_s.value), show_ratio(cell.over_median.value, 2)
    return f"the slowest is {pair_name(matrix.case, cell.ranks)}, {rate}, {part} of the median pair"
