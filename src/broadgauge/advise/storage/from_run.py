"""Which figures does a run give to choose storages by? Those of its cases on storages."""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.storage_cases import StorageFigure, speaking_figures
from broadgauge.specs.storage_table import (
    SAMPLES_OF_A_FIGURE,
    StorageFigures,
    StorageJob,
    StorageNeeds,
    StorageOfPhase,
    StorageTable,
)

_NOT_COLD = {
    "warm": "of a warm cache: memory's, not the storage's",
    "unknown": "of a cache whose state can't be proven",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStorages:
    """What was measured of storages alike: cases that differ in their storage only."""

    cases: tuple[CaseSummary, ...]
    left_out: tuple[str, ...]
    """Labels of other cases on storages: of another shape, network or workload."""


def measured_storages(run: RunSummary) -> MeasuredStorages | None:
    """The most of them that can be put beside each other, the largest shape first; None: the run
    measured no storage."""
    groups: dict[tuple[str, str, str], list[CaseSummary]] = {}
    for summary in run.candidates:
        case = summary.case
        if case.storage is None or not any(record.storage for record in summary.good):
            continue
        workload = case.workload.name.removesuffix(f"-{case.storage.name}")
        groups.setdefault((workload, case.shape, case.network_name), []).append(summary)
    if not groups:
        return None
    cases = max(groups.values(), key=lambda each: (len(each), each[0].case.world_size))
    others = [each for group in groups.values() if group is not cases for each in group]
    return MeasuredStorages(cases=tuple(cases), left_out=tuple(each.case.label for each in others))


def table_of_cases(
    cases: Sequence[CaseSummary],
    *,
    job: StorageJob | None = None,
    needs: StorageNeeds | None = None,
    now: StorageOfPhase | None = None,
    note: str | None = None,
) -> StorageTable:
    """By mean over launches of what speaks for each phase; a phase that was not measured is not
    known."""
    return StorageTable(
        storages=tuple(_figures(summary) for summary in cases),
        job=job or StorageJob(),
        needs=needs or StorageNeeds(),
        now=now or StorageOfPhase(),
        note=note,
    )


def cache_notes(cases: Sequence[CaseSummary]) -> tuple[str, ...]:
    """Which figures are not proven to be the storage's own?"""
    notes = []
    for phase in ("batch_loading", "model_loading"):
        for state, what in _NOT_COLD.items():
            names = [
                summary.case.storage.name
                for summary in cases
                if summary.case.storage is not None and _state(summary, phase) == state
            ]
            if names:
                notes.append(f"{phase.replace('_', ' ')} on {', '.join(names)} is {what}")
    return tuple(notes)


def _state(summary: CaseSummary, phase: str) -> str | None:
    figure = speaking_figures(summary).get(phase)
    return None if figure is None or figure.wait_s is None else figure.cache or "unknown"


def _figures(summary: CaseSummary) -> StorageFigures:
    storage = summary.case.storage
    assert storage is not None, "these cases have one"
    by_phase = speaking_figures(summary)
    batches, model = by_phase.get("batch_loading"), by_phase.get("model_loading")
    saves = by_phase.get("checkpoint_saving")
    return StorageFigures(
        name=storage.name,
        store=storage.store,
        is_durable=storage.outlives_node,
        batch_loading_s=_per_100_samples(batches),
        batch_cache="unknown" if batches is None else batches.cache or "unknown",
        model_loading_s=_wait_s(model),
        checkpoint_stall_s=_wait_s(saves),
        time_to_durable_s=None
        if saves is None or saves.durable_s is None
        else saves.durable_s.value,
        price_usd_per_hour=storage.price_usd_per_hour or 0.0,
    )


def _wait_s(figure: StorageFigure | None) -> float | None:
    return None if figure is None or figure.wait_s is None else figure.wait_s.value


def _per_100_samples(figure: StorageFigure | None) -> float | None:
    wait_s = _wait_s(figure)
    if figure is None or wait_s is None or not figure.samples:
        return None
    return wait_s * SAMPLES_OF_A_FIGURE / figure.samples
