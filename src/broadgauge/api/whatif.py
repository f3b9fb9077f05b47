"""What would a run give on another network, or on more nodes? Asked from Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from broadgauge.api.asking import (
    OneOrMore,
    PathLike,
    catalog_of,
    count,
    path_or_none,
    run_of,
    text,
    values_of,
)
from broadgauge.api.display import Displayed, plain_text, preformatted
from broadgauge.api.table import Table, table_of_rows
from broadgauge.catalog.catalog import Catalog
from broadgauge.predict.runs.cases import pick_case, picked_words
from broadgauge.predict.system.file import read_system
from broadgauge.predict.whatif.asked_changes import AskedChanges, changes_of, notes_of
from broadgauge.predict.whatif.changes import WhatIf
from broadgauge.predict.whatif.whatif import what_if
from broadgauge.report.page.markup import Html
from broadgauge.report.predict.whatif import print_whatif, whatif_document
from broadgauge.results.run_path import RUNS_FOLDER, read_summary


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Changed(Displayed):
    """What `whatif` answers; a notebook shows what the command prints."""

    _found: WhatIf
    _notes: tuple[str, ...]
    _catalog: Catalog

    def __repr__(self) -> str:
        return f"<WhatIf of {self._found.run_name}: {len(self._found.answers)} answers>"

    @property
    def table(self) -> Table:
        """One row an answer, in the order asked.

        Columns as in `document`: label, nodes, is_measured (nothing was changed), step_time_s with
        the ends low_s and high_s of its 80 % interval, tokens_per_s, speedup_ratio (of tokens/s
        over the measured), compute_s, exposed_network_s, network_bytes (sent by a node in a step),
        network_basis.
        """
        answers: Any = self.document["answers"]
        return table_of_rows("whatif", answers)

    @property
    def document(self) -> dict[str, object]:
        """What `whatif --json` prints: what was measured, what was modelled, and the checks."""
        return whatif_document(self._found, self._notes, self._catalog.replaced)

    def _html(self) -> Html:
        return preformatted(self._plain())

    def _plain(self) -> str:
        return plain_text(partial(print_whatif, self._found, self._notes))


def whatif(
    run: PathLike = "last",
    *,
    case: str | None = None,
    network: OneOrMore[str] | None = None,
    nodes: OneOrMore[int] | None = None,
    strategy: OneOrMore[str] | None = None,
    accumulation: OneOrMore[int] | None = None,
    gradient_dtype: OneOrMore[str] | None = None,
    storage: str | None = None,
    system: PathLike | None = None,
    catalog: Catalog | OneOrMore[PathLike] | None = None,
    runs_folder: PathLike = RUNS_FOLDER,
) -> Changed:
    """What a stored run's training would take if something were otherwise.

    The run is its own calibration, and only what changes is modelled. Several values of several
    properties ask for every combination; without any, the answer is what was measured.

    run: a run, its folder, or `"last"`. case: which of its trainings, as `"network=pod-like"`.
    network: of the catalog (`"roce-400g"`), of the run, or a rate (`"25 Gbit/s"`).
    nodes: so many, each rank's batch as it is. strategy: ddp, fsdp or hsdp. accumulation:
        micro-batches a step. gradient_dtype: float32 or bfloat16.
    storage: of the catalog. system: a file of `calibrate` on the run's machine. catalog: from
        `load_catalog`, or files of yours.

    Raises InputError for what this run can't answer, RunFolderError where it can't be read.

    Example: `whatif("last", network=["10 Gbit/s", "roce-400g"], nodes=[2, 8]).table.to_pandas()`
    """
    known = catalog_of(catalog)
    summary = read_summary(run_of("run", run, runs_folder))
    base = pick_case(summary, None if case is None else text("case", case))
    asked = AskedChanges(
        network=_texts("network", network),
        nodes=_numbers("nodes", nodes),
        strategy=_texts("strategy", strategy),
        accumulation=_numbers("accumulation", accumulation),
        gradient_dtype=_texts("gradient_dtype", gradient_dtype),
    )
    changes = changes_of(asked, summary, base, known)
    picked = picked_words(summary, case, base)
    stored_on = None if storage is None else text("storage", storage)
    notes = notes_of(stored_on, base, changes, known)
    file = path_or_none("system", system)
    found = what_if(
        summary,
        base,
        changes,
        system=None if file is None else read_system(file),
        gpus=known.gpus,
    )
    return Changed(found, notes if picked is None else (picked, *notes), known)


def _texts(name: str, given: object) -> list[str]:
    return [] if given is None else values_of(name, given, text)


def _numbers(name: str, given: object) -> list[str]:
    return [] if given is None else [str(each) for each in values_of(name, given, count)]
