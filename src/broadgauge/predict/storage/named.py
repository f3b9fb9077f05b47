"""Which storages does a text name: of the catalog, of a file of entries, of a run?"""

from collections.abc import Iterator
from pathlib import Path

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.reading import read_entries
from broadgauge.catalog.references import StorageEntry
from broadgauge.predict.storage.description import StorageModel
from broadgauge.predict.storage.from_catalog import of_entry
from broadgauge.predict.storage.from_rows import MeasuredOn, of_rows
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.run_path import is_relative_to_last, read_summary, run_path
from broadgauge.specs.errors import InputError

IN_FILES = (".yaml", ".yml")


def storages_named(
    text: str, catalog: Catalog, run: RunSummary | None = None
) -> tuple[StorageModel, ...]:
    """One by its name, of this run before the catalog; else all of a file or of a run folder.

    Raises InputError, ExperimentError, RunFolderError.
    """
    own = {} if run is None else measured_storages(run)
    if text in own:
        return (own[text],)
    if text.endswith(IN_FILES):
        return _of_file(Path(text))
    if is_relative_to_last(text) or Path(text).is_dir():
        found = measured_storages(read_summary(run_path(text)))
        if not found:
            raise InputError(
                f"{text} has no storage whose reads and writes were measured",
                hint="a workload of `kind: storage` with `raw` measures them",
            )
        return tuple(found.values())
    return (of_entry(catalog.storage_named(text)),)


def measured_storages(run: RunSummary) -> dict[str, StorageModel]:
    """By name, those whose reads and writes this run measured; of several cases the first."""
    found: dict[str, StorageModel] = {}
    for summary in run.candidates:
        for model in _of_case(run, summary):
            found.setdefault(model.name, model)
    return found


def _of_case(run: RunSummary, summary: CaseSummary) -> Iterator[StorageModel]:
    case = summary.case
    rows = [row for record in summary.good for row in record.storage]
    if case.storage is None or not rows:
        return
    trials = len(summary.good)
    model = of_rows(
        rows,
        MeasuredOn(
            name=case.storage.name,
            nodes=case.nodes,
            ranks_per_node=case.ranks_per_node,
            is_durable=case.storage.outlives_node,
            source=f"{run.folder.name}, {trials} trial{'s' * (trials > 1)}",
        ),
    )
    if model is not None:
        yield model


def _of_file(path: Path) -> tuple[StorageModel, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"{path} can't be read: {reason}") from error
    entries = [each.entry for each in read_entries(text, str(path))]
    storages = tuple(of_entry(entry) for entry in entries if isinstance(entry, StorageEntry))
    if not storages:
        raise InputError(
            f"{path} has no storage",
            hint="storage: [{name: nfs, read_gbyte_per_s: 1, write_gbyte_per_s: 1, "
            "is_durable: true}]",
        )
    return storages
