"""How are a storage's measured rows written? For the terminal and the page alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.report.quantities import show, show_estimate
from broadgauge.results.model import CaseSummary
from broadgauge.results.storage_cases import StorageFigure, storage_figures
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_size, show_time

HEAD = ("phase", "variant", "cache", "waits", "durable after", "rate", "p50", "p99", "CPU", "bytes")
PART_WORDS = {
    "device_to_host": "device to host",
    "to_device": "to the device",
    "sync": "fsync",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRowWords:
    """One row, written."""

    cells: tuple[str, ...]
    """As HEAD."""
    below: str
    """What proves the cache's state and the durability, where the time went, or the problem."""


def storage_row_words(summary: CaseSummary) -> tuple[StorageRowWords, ...]:
    """In the order measured."""
    return tuple(_row(figure) for figure in storage_figures(summary))


def _row(figure: StorageFigure) -> StorageRowWords:
    phase = figure.phase.replace("_", " ")
    if figure.problem:
        cells = (phase, figure.variant, figure.asked_cache or "–", *("–",) * 7)
        return StorageRowWords(cells=cells, below=f"not measured: {figure.problem}")
    return StorageRowWords(
        cells=(
            phase,
            figure.variant,
            cache_words(figure),
            _words("wait_s", figure.wait_s),
            _words("durable_s", figure.durable_s),
            _words("rate_gbyte_per_s", figure.gbyte_per_s),
            _value("operation_p50_s", figure.operation_p50_s),
            _value("operation_p99_s", figure.operation_p99_s),
            _value("cpu_s", figure.cpu_s),
            show_size(figure.num_bytes),
        ),
        below="; ".join(filter(None, (_evidence(figure), parts_words(figure.parts_s)))),
    )


def cache_words(figure: StorageFigure) -> str:
    """What was proven; what was asked, where that is another thing."""
    if figure.cache is None:
        return "–"
    if figure.asked_cache in (None, figure.cache):
        return figure.cache
    return f"{figure.cache} (asked: {figure.asked_cache})"


def parts_words(parts_s: dict[str, float]) -> str:
    """`serialise 1.2 s, write 3.4 s`."""
    return ", ".join(
        f"{PART_WORDS.get(name, name)} {show_time(time_s)}" for name, time_s in parts_s.items()
    )


def evidence_words(figures: Sequence[StorageFigure]) -> str:
    """What proves the states of the caches of these, each once."""
    return "; ".join(dict.fromkeys(figure.cache_evidence for figure in figures))


def _evidence(figure: StorageFigure) -> str:
    return figure.durable_evidence or figure.cache_evidence


def _words(name: str, estimate: Estimate | None) -> str:
    return "–" if estimate is None else show_estimate(name, estimate)


def _value(name: str, estimate: Estimate | None) -> str:
    return "–" if estimate is None else show(name, estimate.value)
