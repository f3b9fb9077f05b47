"""How fast is each pair of nodes, and what is it of the median pair of the same trial?

Over the median of its own trial, what the machine did to all pairs cancels. Directions count by
themselves: a transceiver may be bad in one. Which pair is slow: advise/pairs/.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from broadgauge.results.model import CaseSummary, PairSummary
from broadgauge.results.summary import estimate_over
from broadgauge.specs.case import Case
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.pair_rates import RankPair, largest_of_pairs, pair_rate_gbyte_per_s
from broadgauge.specs.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCell:
    """Two places, in one direction."""

    origin: int
    target: int
    ranks: RankPair
    rate_gbyte_per_s: Estimate
    over_median: Estimate
    """1: as fast as the median pair of the same trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMatrix:
    """All pairs at the largest message."""

    case: Case
    place: str
    """What the numbers count: `node`, or `rank` on one node."""
    dtype: str
    size_bytes: int
    places: tuple[int, ...]
    cells: Mapping[tuple[int, int], PairCell]
    """By origin and target."""

    @property
    def slowest(self) -> PairCell:
        return min(self.cells.values(), key=lambda cell: cell.over_median.value)


def pair_matrix(summary: CaseSummary) -> PairMatrix | None:
    """How fast is each pair? None where no pairs were measured."""
    over_median = {record.record_id: _over_median(record) for record in summary.good}
    in_trials = {ranks for trial in over_median.values() for ranks in trial}
    pairs = [p for p in _largest(summary.pairs) if (p.from_rank, p.to_rank) in in_trials]
    if not pairs:
        return None
    cells = [_cell(summary, pair, over_median) for pair in pairs]
    return PairMatrix(
        case=summary.case,
        place="node" if summary.case.nodes > 1 else "rank",
        dtype=pairs[0].dtype,
        size_bytes=pairs[0].size_bytes,
        places=tuple(sorted({end for cell in cells for end in (cell.origin, cell.target)})),
        cells={(cell.origin, cell.target): cell for cell in cells},
    )


def _largest(pairs: Sequence[PairSummary]) -> list[PairSummary]:
    """The largest message of the first data type, as a trial's own finding takes it."""
    first = [pair for pair in pairs if pair.dtype == pairs[0].dtype]
    largest = max((pair.size_bytes for pair in first), default=0)
    return [pair for pair in first if pair.size_bytes == largest]


def _cell(
    summary: CaseSummary, pair: PairSummary, over_median: Mapping[str, Mapping[RankPair, float]]
) -> PairCell:
    ranks = (pair.from_rank, pair.to_rank)
    estimate = estimate_over(summary.good, lambda r: over_median[r.record_id].get(ranks))
    assert estimate is not None, "only pairs that some trial has"
    each = summary.case.ranks_per_node if summary.case.nodes > 1 else 1
    return PairCell(
        origin=pair.from_rank // each,
        target=pair.to_rank // each,
        ranks=ranks,
        rate_gbyte_per_s=pair.rate_gbyte_per_s,
        over_median=estimate,
    )


def _over_median(record: Record) -> dict[RankPair, float]:
    """Each pair's rate over the median of this trial."""
    rows = largest_of_pairs(record.collectives)
    rates = {ranks: pair_rate_gbyte_per_s(row) for ranks, row in rows.items()}
    middle = median(rates.values()) if rates else 0.0
    return {ranks: rate / middle for ranks, rate in rates.items()} if middle > 0 else {}
