"""Is one way between two nodes worse than the others?"""

from broadgauge.results.model import CaseSummary
from broadgauge.results.pairs import PairCell, PairMatrix, pair_matrix
from broadgauge.specs.units import show_bandwidth, show_ratio

MOST_NAMED = 3


def pair_words(summary: CaseSummary) -> tuple[bool, str]:
    """Whether a way is slow, and which; no words where no pairs were measured."""
    matrix = pair_matrix(summary)
    if matrix is None:
        return False, ""
    if not matrix.slow:
        slowest = matrix.slowest
        return False, (
            f"no way is slow: the slowest, {_way(slowest, matrix)}, reaches {_rate(slowest)}"
        )
    named = list(_named(matrix))
    more = len(named) - MOST_NAMED
    words = "; ".join(named[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
    return True, f"a slow way: {words}"


def _named(matrix: PairMatrix) -> list[str]:
    """Slow ways, slowest first; both directions of a pair in one."""
    named: dict[tuple[int, int], str] = {}
    slow = {(cell.origin, cell.target) for cell in matrix.slow}
    for cell in matrix.slow:
        pair = (min(cell.origin, cell.target), max(cell.origin, cell.target))
        back = " and back" if {pair, pair[::-1]} <= slow else ""
        named.setdefault(pair, f"{_way(cell, matrix)}{back}, {_rate(cell)}")
    return list(named.values())


def _way(cell: PairCell, matrix: PairMatrix) -> str:
    return f"{matrix.place} {cell.origin} → {cell.target}"


def _rate(cell: PairCell) -> str:
    rate, part = cell.rate_gbyte_per_s.value, cell.over_median.value
    return f"{show_bandwidth(rate)}, {show_ratio(part, 2)} of the median pair"
