"""How do storages stand beside each other? The article's table, from what was measured.

Source of its columns: "Network and Storage Benchmarks for LLM Training on the Cloud" (SkyPilot,
2025-09-11); the time to durable, the raw rates and the caches' states are ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.advise.storage.choosing import StorageAdvice, advise
from broadgauge.advise.storage.from_run import cache_notes, table_of_cases
from broadgauge.advise.verdicts.storage_verdict import device_share_words
from broadgauge.report.quantities import show, spread
from broadgauge.report.storage_labels import storage_labels
from broadgauge.report.storage_words import PHASES
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.storage_cases import StorageFigure, speaking_figures
from broadgauge.specs.units import show_ratio

TITLE = "Storages"
HOW = (
    "How long training waits, slowest rank, mean over launches; of the first variant of each "
    "phase, cold where that was proven. Durable: from the begin of a save until it is on the "
    "storage itself."
)
HEAD = (
    "storage",
    "batches\n100 samples",
    "model\nloading",
    "checkpoint\nstall",
    "checkpoint\ndurable",
    "raw\nread",
    "raw\nwrite",
    "outlives\nthe node",
    "best for",
)
HOUR_TITLE = "Share of an hour that is lost"
INTERVALS_S = {"a save every 10 min": 600.0, "every 30 min": 1800.0, "every hour": 3600.0}
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTableWords:
    """All that is said of the storages of a run."""

    rows: tuple[tuple[str, ...], ...]
    """As HEAD."""
    hour_head: tuple[str, ...]
    hour_rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    """How much of the device each phase reaches, and what limits it."""
    notes: tuple[str, ...]


def cases_on_storages(run: RunSummary) -> tuple[CaseSummary, ...]:
    """Those with measured phases, in the plan's order."""
    return tuple(
        summary
        for summary in run.candidates
        if summary.case.storage is not None and any(record.storage for record in summary.good)
    )


def storage_table_words(run: RunSummary) -> StorageTableWords | None:
    """None: the run measured no storage."""
    cases = cases_on_storages(run)
    if not cases:
        return None
    labels = storage_labels(cases)
    uses = _best_uses(cases)
    return StorageTableWords(
        rows=tuple(_row(each, labels[each.case.key], uses) for each in cases),
        hour_head=("storage", "one model load", *INTERVALS_S),
        hour_rows=tuple(_hour_row(each, labels[each.case.key]) for each in cases),
        sentences=tuple(
            f"{labels[each.case.key]}: {words}" for each in cases for words in _limits(each)
        ),
        notes=(*cache_notes(cases), *_problems(cases, labels)),
    )


def _row(summary: CaseSummary, label: str, uses: dict[str, list[str]]) -> tuple[str, ...]:
    figures, storage = speaking_figures(summary), summary.case.storage
    assert storage is not None, "these cases have one"
    return (
        label,
        _cell(summary, "batch_loading_s", figures.get("batch_loading")),
        _cell(summary, "model_loading_s", figures.get("model_loading")),
        _cell(summary, "checkpoint_stall_s"),
        _cell(summary, "time_to_durable_s"),
        _cell(summary, "raw_read_gbyte_per_s", figures.get("raw read")),
        _cell(summary, "raw_write_gbyte_per_s"),
        "yes" if storage.outlives_node else "no",
        "\n".join(uses.get(summary.case.key, ())) or "–",
    )


def _cell(summary: CaseSummary, metric: str, figure: StorageFigure | None = None) -> str:
    """The figure, its spread, and for reads the state of the cache."""
    estimate = summary.estimates.get(metric)
    if estimate is None:
        return "–"
    lines = [show(metric, estimate.value), spread(metric, estimate)]
    if figure is not None:
        state = figure.cache or "unknown"
        lines.append(f"{state}" if state != "unknown" else "cache unknown")
    return "\n".join(lines)


def _best_uses(cases: Sequence[CaseSummary]) -> dict[str, list[str]]:
    """By the case's key, among cases that differ in their storage only: as `advise` chooses where
    it has all phases."""
    found: dict[str, list[str]] = {}
    groups: dict[tuple[str, str, str], list[CaseSummary]] = {}
    for each in cases:
        storage = each.case.storage
        base = each.case.workload.name.removesuffix(f"-{storage.name if storage else ''}")
        groups.setdefault((base, each.case.shape, each.case.network_name), []).append(each)
    for group in groups.values():
        if len(group) < 2:
            continue
        advice: StorageAdvice = advise(table_of_cases(group))
        if advice.chosen is None:
            continue
        for wait in advice.chosen.waits:
            key = next(
                each.case.key
                for each in group
                if each.case.storage is not None and each.case.storage.name == wait.storage.name
            )
            found.setdefault(key, []).append(PHASES[wait.phase])
    return found


def _hour_row(summary: CaseSummary, label: str) -> tuple[str, ...]:
    load_s, stall_s = summary.value("model_loading_s"), summary.value("checkpoint_stall_s")
    return (
        label,
        "–" if load_s is None else show_ratio(min(1.0, load_s / _HOUR_S), 2),
        *(
            "–" if stall_s is None else show_ratio(min(1.0, stall_s / interval_s), 2)
            for interval_s in INTERVALS_S.values()
        ),
    )


def _limits(summary: CaseSummary) -> Iterator[str]:
    for figure in speaking_figures(summary).values():
        words = device_share_words(summary, figure)
        if words is not None:
            yield words


def _problems(cases: Sequence[CaseSummary], labels: dict[str, str]) -> Iterator[str]:
    for summary in cases:
        for figure in speaking_figures(summary).values():
            if figure.problem:
                phase = figure.phase.replace("_", " ")
                yield f"{labels[summary.case.key]}: no {phase}: {figure.problem}"
