"""Which figures speak for the phases on a storage, and which rows are exported?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.results.kinds.kind import KindInResults
from broadgauge.results.tables import Cell, CellKind, RowTable
from broadgauge.specs.record import Record
from broadgauge.specs.workload import StorageWorkload

SAVE_PARTS = ("gather", "device_to_host", "serialise", "write", "sync", "upload")
LOAD_PARTS = ("read", "deserialise", "broadcast", "to_device")
_COLUMNS: dict[str, CellKind] = {
    "phase": "text",
    "variant": "text",
    "asked_cache": "text",
    "cache": "text",
    "cache_evidence": "text",
    "num_bytes": "integer",
    "wait_s": "number",
    "durable_s": "number",
    "durable_evidence": "text",
    "gbyte_per_s": "number",
    "operations": "integer",
    "operation_p50_s": "number",
    "operation_p99_s": "number",
    "cpu_s": "number",
    "read_bytes": "integer",
    "samples": "integer",
    **dict.fromkeys((f"part_{part}_s" for part in (*SAVE_PARTS, *LOAD_PARTS)), "number"),
    "problem": "text",
}


@dataclass(frozen=True, slots=True)
class StorageInResults(KindInResults):
    """Phases on a storage as their figures are compared."""

    storage: StorageWorkload

    @property
    def headline_metrics(self) -> tuple[str, ...]:
        """Of the phases that are measured; what training waits for before raw rates."""
        phases = (
            (self.storage.checkpoint_saving, ("checkpoint_stall_s", "time_to_durable_s")),
            (self.storage.model_loading, ("model_loading_s",)),
            (self.storage.batch_loading, ("batch_loading_s",)),
            (self.storage.raw, ("raw_read_gbyte_per_s", "raw_write_gbyte_per_s")),
        )
        return tuple(name for phase, names in phases if phase is not None for name in names)


def _rows_of(record: Record) -> Iterator[dict[str, Cell]]:
    """A part that a phase does not have is empty."""
    for row in record.storage:
        parts = {f"part_{part}_s": time_s for part, time_s in row.parts_s.items()}
        yield {name: parts.get(name, getattr(row, name, None)) for name in _COLUMNS}


STORAGE_TABLE = RowTable(columns=_COLUMNS, rows_of=_rows_of)
"""One row a phase, variant, state of the cache and trial."""
