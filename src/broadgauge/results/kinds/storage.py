"""Which figures speak for a storage, and which rows are exported?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.results.kinds.kind import KindInResults
from broadgauge.results.tables import Cell, CellKind, RowTable
from broadgauge.specs.records.record import Record

_COLUMNS: dict[str, CellKind] = {
    "access": "text",
    "repetition": "integer",
    "size_bytes": "integer",
    "time_s": "number",
    "stall_s": "number",
    "slowest_rank": "integer",
    "operations": "integer",
    "device_bytes": "integer",
    "cached_before_bytes": "integer",
    "cache": "text",
    "evidence": "text",
    "file_system": "text",
    "held_ratio": "number",
}


@dataclass(frozen=True, slots=True)
class StorageInResults(KindInResults):
    """A phase as its figures are compared."""

    headline: tuple[str, ...]

    @property
    def headline_metrics(self) -> tuple[str, ...]:
        return self.headline


RAW_FILES = StorageInResults(("read_gbyte_per_s", "write_gbyte_per_s"))
MODEL_LOAD = StorageInResults(("model_load_s", "read_gbyte_per_s"))
CHECKPOINT = StorageInResults(("save_stall_s", "save_durable_s"))
BATCHES = StorageInResults(("wait_per_100_samples_s", "batch_wait_p99_s"))


def _rows_of(record: Record) -> Iterator[dict[str, Cell]]:
    for row in record.file_accesses:
        yield {name: getattr(row, name) for name in _COLUMNS}


FILE_ACCESSES_TABLE = RowTable(columns=_COLUMNS, rows_of=_rows_of)
"""One row a repetition and trial."""
