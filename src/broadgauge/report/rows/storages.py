"""Which storage is fast at which phase? One row a storage, as the choice between them is made.

Of several workloads of one phase the fastest stands there, with its name; cold ones before others,
since a training that starts finds nothing in memory.
"""

from collections.abc import Iterator, Sequence

from broadgauge.report.words.quantities import show
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.storages.storage import Storage

PHASES = {
    "100 samples": ("wait_per_100_samples_s",),
    "model loaded": ("model_load_s",),
    "checkpoint": ("save_stall_s", "save_durable_s"),
}
"""By their titles; the metric that says which workload is the fastest, and another of the same."""
HEAD = ("storage", *PHASES, "durable after", "outlives node")
HOW = (
    "What training waits for 100 samples, for its model and for a checkpoint. Of several workloads "
    "of a phase the fastest, cold ones first: what was found in memory is said. Durable: of the "
    "same checkpoint. Outlives the node: as the experiment or the catalog says."
)


def storage_rows(run: RunSummary) -> list[tuple[str, ...]]:
    """What stands below a figure are further lines of its cell. Empty where fewer than two phases
    were measured: there is nothing to put side by side."""
    cases = [summary for summary in run.cases if summary.case.storage is not None]
    measured = {metrics[0] for metrics in PHASES.values() if _with(metrics[0], cases)}
    if len(measured) < 2:
        return []
    return [_row(place, group) for place, group in _by_place(cases)]


def _by_place(cases: Sequence[CaseSummary]) -> Iterator[tuple[str, list[CaseSummary]]]:
    """A storage with a shape, and a network where there is one; in the experiment's order."""
    places: dict[tuple[str, str], list[CaseSummary]] = {}
    for summary in cases:
        case = summary.case
        places.setdefault((case.network_name, case.shape), []).append(summary)
    has_shapes = len({shape for _, shape in places}) > 1
    for (name, shape), group in places.items():
        yield (f"{name} {shape}" if has_shapes else name), group


def _row(place: str, cases: Sequence[CaseSummary]) -> tuple[str, ...]:
    cells = []
    durable = "–"
    for metric, *others in PHASES.values():
        found = _with(metric, cases)
        cold = [each for each in found if each.case.workload.asked_cache != "warm"]
        fastest = min(cold or found, key=lambda each: each.value(metric) or 0.0, default=None)
        cells.append("–" if fastest is None else _cell(fastest, metric, len(found)))
        for other in others:
            value = None if fastest is None else fastest.value(other)
            durable = "–" if value is None else show(other, value)
    return (place, *cells, durable, _outlives(cases[0].case.storage))


def _with(metric: str, cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    return [summary for summary in cases if summary.value(metric) is not None]


def _cell(summary: CaseSummary, metric: str, num_found: int) -> str:
    value = show(metric, summary.value(metric) or 0.0)
    states = {row.cache for record in summary.good for row in record.file_accesses} - {None, "cold"}
    words = [summary.case.workload.name] if num_found > 1 else []
    words += [f"cache {state}" for state in sorted(filter(None, states))]
    return "\n".join([value, *words])


def _outlives(storage: Storage | None) -> str:
    if storage is None or storage.is_durable is None:
        return "unknown"
    return "yes" if storage.is_durable else "no"
