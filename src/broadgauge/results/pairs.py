"""Which way between two nodes is slower than the others?

In each trial a pair's rate is taken over the median of all pairs of that trial, so that what the
machine did to all of them cancels. Directions count by themselves: a transceiver may be bad one
way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from broadgauge.results.compare import by_launch
from broadgauge.results.model import CaseSummary, PairSummary
from broadgauge.results.statistics import FEWEST_FOR_A_VERDICT, interval_of_launches
from broadgauge.results.summary import estimate_over
from broadgauge.specs.case import Case
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.record import Record

SLOW_RATIO = 0.8
"""Pairs of equal links differ by a few percent here; a fifth less is what a job waits for."""
ERROR_RATE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCell:
    """One way between two places."""

    origin: int
    target: int
    rate_gbyte_per_s: Estimate
    over_median: Estimate
    """1: as fast as the median pair of the same trial."""
    is_slow: bool
    """The whole interval is below 80 % of the median, at 1 − 0.05 / pairs, since the slowest of
    many is looked at; with fewer than three launches the point decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMatrix:
    """All ways at the largest message."""

    case: Case
    place: str
    """What the numbers count: `node`, or `rank` where several ranks of a node sent."""
    dtype: str
    size_bytes: int
    places: tuple[int, ...]
    cells: Mapping[tuple[int, int], PairCell]
    """By origin and target."""

    @property
    def slowest(self) -> PairCell:
        return min(self.cells.values(), key=lambda cell: cell.over_median.value)

    @property
    def slow(self) -> tuple[PairCell, ...]:
        """The slow ones, slowest first."""
        slow = (cell for cell in self.cells.values() if cell.is_slow)
        return tuple(sorted(slow, key=lambda cell: cell.over_median.value))


def pair_matrix(summary: CaseSummary) -> PairMatrix | None:
    """How fast is each way? None where no pairs were measured."""
    if not summary.pairs:
        return None
    largest = max(summary.pairs, key=lambda pair: pair.size_bytes)
    kind = (largest.dtype, largest.size_bytes)
    pairs = [pair for pair in summary.pairs if (pair.dtype, pair.size_bytes) == kind]
    numbers = _numbers(summary.case, pairs)
    over_median = {r.record_id: _over_median(r, *kind) for r in summary.good}
    measured = (_cell(summary, pair, numbers, over_median, len(pairs)) for pair in pairs)
    cells = [cell for cell in measured if cell is not None]
    if not cells:
        return None
    return PairMatrix(
        case=summary.case,
        place="node" if summary.case.nodes == len(set(numbers.values())) > 1 else "rank",
        dtype=largest.dtype,
        size_bytes=largest.size_bytes,
        places=tuple(sorted({*numbers.values()})),
        cells={(cell.origin, cell.target): cell for cell in cells},
    )


def _cell(
    summary: CaseSummary,
    pair: PairSummary,
    numbers: Mapping[int, int],
    over_median: Mapping[str, Mapping[tuple[int, int], float]],
    num_pairs: int,
) -> PairCell | None:
    def value_of(record: Record) -> float | None:
        return over_median[record.record_id].get((pair.from_rank, pair.to_rank))

    estimate = estimate_over(summary.good, value_of)
    if estimate is None:
        return None
    worst = estimate.value
    if estimate.launches >= FEWEST_FOR_A_VERDICT:
        launches = by_launch(summary.good, value_of)
        _, high = interval_of_launches(launches, 1 - ERROR_RATE / num_pairs)
        assert high is not None
        worst = high
    return PairCell(
        origin=numbers[pair.from_rank],
        target=numbers[pair.to_rank],
        rate_gbyte_per_s=pair.rate_gbyte_per_s,
        over_median=estimate,
        is_slow=worst < SLOW_RATIO,
    )


def _numbers(case: Case, pairs: Sequence[PairSummary]) -> dict[int, int]:
    """Rank → node, where one rank of each node sent; else rank → rank."""
    ranks = sorted({rank for pair in pairs for rank in (pair.from_rank, pair.to_rank)})
    nodes = {rank: rank // case.ranks_per_node for rank in ranks}
    return nodes if len({*nodes.values()}) == len(ranks) else {rank: rank for rank in ranks}


def _over_median(record: Record, dtype: str, size_bytes: int) -> dict[tuple[int, int], float]:
    """Each way's rate over the median of this trial."""
    rates = {
        (row.from_rank, row.to_rank): row.algbw_gbyte_per_s
        for row in record.collectives
        if row.from_rank is not None
        and row.to_rank is not None
        and (row.dtype, row.size_bytes) == (dtype, size_bytes)
    }
    middle = median(rates.values()) if rates else 0.0
    return {ways: rate / middle for ways, rate in rates.items()} if middle > 0 else {}


def name_of(cell: PairCell, place: str) -> str:
    """`node 1 → node 3`."""
    return f"{place} {cell.origin} → {place} {cell.target}"
