"""What do a storage's phases take over all launches? Estimates by row; who speaks for a phase."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broadgauge.messages.storage import CacheState
from broadgauge.results.model import CaseSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.record import Record
from broadgauge.specs.storage_rows import CACHE_ORDER, StorageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFigure:
    """A phase in one variant and one asked state of the cache, over all launches."""

    phase: str
    variant: str
    asked_cache: str | None
    cache: CacheState | None
    """What was proven in every trial; trials that differ prove nothing. None: it writes."""
    cache_evidence: str
    durable_evidence: str
    num_bytes: int
    samples: int
    wait_s: Estimate | None
    durable_s: Estimate | None
    gbyte_per_s: Estimate | None
    operation_p50_s: Estimate | None
    operation_p99_s: Estimate | None
    cpu_s: Estimate | None
    parts_s: dict[str, float]
    """Mean over trials, of the slowest rank, in the order in which they come."""
    problem: str
    """Why no trial has it; empty: at least one has."""


def storage_figures(summary: CaseSummary) -> tuple[StorageFigure, ...]:
    """Every row of the case's good trials, in the order measured."""
    found: dict[tuple[str, str, str | None], list[tuple[Record, StorageRow]]] = {}
    for record in summary.good:
        for row in record.storage:
            found.setdefault((row.phase, row.variant, row.asked_cache), []).append((record, row))
    return tuple(_figure(rows) for rows in found.values())


def speaking_figures(summary: CaseSummary) -> dict[str, StorageFigure]:
    """By phase, and of raw rates by variant: the first variant that was measured, cold where that
    is proven, as `merging/storage_metrics.py` chooses. A phase that failed has its problem."""
    found: dict[str, StorageFigure] = {}
    for figure in storage_figures(summary):
        name = figure.phase if figure.phase != "raw" else f"raw {figure.variant.partition(',')[0]}"
        if name not in found or _is_better(figure, found[name]):
            found[name] = figure
    return found


def _is_better(figure: StorageFigure, than: StorageFigure) -> bool:
    if than.problem:
        return not figure.problem
    is_same = figure.variant == than.variant and not figure.problem
    return is_same and CACHE_ORDER[figure.cache] < CACHE_ORDER[than.cache]


def _figure(rows: Sequence[tuple[Record, StorageRow]]) -> StorageFigure:
    measured = [(record, row) for record, row in rows if not row.problem]
    last = (measured or rows)[-1][1]
    states = {row.cache for _, row in measured}
    return StorageFigure(
        phase=last.phase,
        variant=last.variant,
        asked_cache=last.asked_cache,
        cache=last.cache if len(states) <= 1 else "unknown",
        cache_evidence=last.cache_evidence if len(states) <= 1 else "trials differ",
        durable_evidence=last.durable_evidence,
        num_bytes=last.num_bytes,
        samples=last.samples,
        wait_s=_over(measured, lambda row: row.wait_s),
        durable_s=_over(measured, lambda row: row.durable_s),
        gbyte_per_s=_over(measured, lambda row: row.gbyte_per_s),
        operation_p50_s=_over(measured, lambda row: row.operation_p50_s),
        operation_p99_s=_over(measured, lambda row: row.operation_p99_s),
        cpu_s=_over(measured, lambda row: row.cpu_s),
        parts_s=_parts_s([row for _, row in measured]),
        problem="" if measured else last.problem,
    )


def _over(
    rows: Sequence[tuple[Record, StorageRow]], value_of: Callable[[StorageRow], float | None]
) -> Estimate | None:
    from broadgauge.results.summary import (
        estimate_over,  # numpy, which advice on a trial is without
    )

    values = {record.record_id: value_of(row) for record, row in rows}
    return estimate_over([record for record, _ in rows], lambda record: values[record.record_id])


def _parts_s(rows: Sequence[StorageRow]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row.parts_s)
    return {name: sum(row.parts_s.get(name, 0.0) for row in rows) / len(rows) for name in names}
