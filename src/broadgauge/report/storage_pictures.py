"""Which pictures show what storages did? One a phase, and the raw rates."""

from collections.abc import Iterator, Mapping, Sequence

from broadgauge.analysis.model import AnalysedRun
from broadgauge.messages.storage import StoragePhaseWord
from broadgauge.report.charts_storage import BarFigures, storage_bars
from broadgauge.report.kinds.kind import Chart, ChartGroup
from broadgauge.report.storage_labels import storage_labels
from broadgauge.report.storage_rows import cache_words
from broadgauge.results.model import CaseSummary
from broadgauge.results.storage_cases import speaking_figures
from broadgauge.specs.units import show_bandwidth, show_time

HOW = "Mean over launches with its 95 % interval, slowest rank; the first variant of the phase. "


def _phases(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    del analysed
    labels = storage_labels(cases)
    figures = {labels[each.case.key]: speaking_figures(each) for each in cases}

    def bars(metrics: Mapping[str, str]) -> BarFigures:
        """Of each storage, what each name stands for."""
        return [
            (
                labels[each.case.key],
                {name: each.estimates.get(metric) for name, metric in metrics.items()},
            )
            for each in cases
        ]

    def notes(phase: StoragePhaseWord) -> dict[str, str]:
        return {
            label: f"{by_phase[phase].variant}, cache {cache_words(by_phase[phase])}"
            for label, by_phase in figures.items()
            if phase in by_phase
        }

    waited_for: tuple[tuple[StoragePhaseWord, str, str], ...] = (
        ("batch_loading", "Batch loading, for 100 samples", "training waits"),
        ("model_loading", "Model loading", "a start waits"),
    )
    for phase, heading, title in waited_for:
        metric, caches = f"{phase}_s", notes(phase)
        spec = storage_bars(
            bars({"waits": metric}), name=metric, title=title, printed=show_time, notes=caches
        )
        yield Chart(title=heading, how=HOW + _states(caches), spec=spec)
    yield Chart(
        title="Checkpoint saving",
        how=HOW + "What training waits for is not what a lost node leaves: both are shown.",
        spec=storage_bars(
            bars(
                {"training waits": "checkpoint_stall_s", "until it is durable": "time_to_durable_s"}
            ),
            name="checkpoint_stall_s",
            title="time of a save",
            printed=show_time,
            notes=notes("checkpoint_saving"),
        ),
    )
    yield Chart(
        title="Raw rates",
        how="Plain sequential reads and writes of all ranks at once; writes until they are "
        "durable. Mean over launches with its 95 % interval.",
        spec=storage_bars(
            bars({"read": "raw_read_gbyte_per_s", "write": "raw_write_gbyte_per_s"}),
            name="raw_read_gbyte_per_s",
            title="all ranks",
            printed=show_bandwidth,
            notes={},
        ),
    )


def _states(caches: dict[str, str]) -> str:
    """Which figures are of a cold cache?"""
    told = "; ".join(f"{label}: {words}" for label, words in caches.items())
    return f"{told}." if told else ""


STORAGE_PICTURES: tuple[ChartGroup, ...] = (_phases,)
