"""Which figures speak for collectives, and which rows are exported?"""

from collections.abc import Iterator

from broadgauge.results.kinds.kind import KindInResults
from broadgauge.results.tables import Cell, CellKind, RowTable
from broadgauge.specs.records.record import Record

_COLUMNS: dict[str, CellKind] = {
    "op": "text",
    "dtype": "text",
    "size_bytes": "integer",
    "iterations": "integer",
    "time_s": "number",
    "time_min_s": "number",
    "time_median_s": "number",
    "time_max_s": "number",
    "algbw_gbyte_per_s": "number",
    "busbw_gbyte_per_s": "number",
    "wire_bytes": "number",
    "amplification_ratio": "number",
    "link_rate_gbps": "number",
    "is_correct": "truth",
    "engine": "text",
    "from_rank": "integer",
    "to_rank": "integer",
}


class CollectivesInResults(KindInResults):
    """Collectives as their figures are compared."""

    @property
    def headline_metrics(self) -> tuple[str, ...]:
        return ("busbw_gbyte_per_s", "latency_s")


def _rows_of(record: Record) -> Iterator[dict[str, Cell]]:
    """The same cells of a collective, of nccl-tests' mean and of a message."""
    for row in record.collectives:
        cells = {name: getattr(row, name, None) for name in _COLUMNS}
        yield cells | {"engine": row.measured_by}


COLLECTIVES_TABLE = RowTable(columns=_COLUMNS, rows_of=_rows_of)
"""One row an op, size and trial."""
