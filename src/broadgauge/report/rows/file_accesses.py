"""Which rows say how a storage was written and read? One an access, over all good trials."""

import statistics
from collections.abc import Iterator

from broadgauge.results.model import CaseSummary
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.units import show_bandwidth, show_size, show_time

HEAD = (
    "access",
    "bytes",
    "training waits",
    "time, median (range)",
    "rate",
    "parts of the time",
    "came from",
)


def file_access_rows(summary: CaseSummary) -> Iterator[tuple[str, ...]]:
    for access in ("write", "read"):
        rows = [
            row for record in summary.good for row in record.file_accesses if row.access == access
        ]
        if rows:
            yield _row(access, rows)


def _row(access: str, rows: list[FileAccessRow]) -> tuple[str, ...]:
    times_s = [row.time_s for row in rows]
    stalls_s = [row.stall_s for row in rows if row.stall_s is not None]
    middle_s = statistics.median(times_s)
    parts = {
        name: statistics.median(row.busiest_parts_s.get(name, 0.0) for row in rows)
        for name in rows[0].busiest_parts_s
    }
    shown = [f"{name} {show_time(each)}" for name, each in parts.items() if each >= 0.01 * middle_s]
    states = sorted({row.cache for row in rows if row.cache is not None})
    return (
        access,
        show_size(rows[0].size_bytes),
        show_time(statistics.median(stalls_s)) if stalls_s else "–",
        f"{show_time(middle_s)} ({show_time(min(times_s))} to {show_time(max(times_s))})",
        show_bandwidth(rows[0].size_bytes / statistics.median(map(_moving_s, rows)) / 1e9),
        ", ".join(shown),
        " or ".join(states) or "–",
    )


def _moving_s(row: FileAccessRow) -> float:
    """Without the steps that a rank computes between its batches."""
    return row.time_s - row.parts_s.get("compute", 0.0)
