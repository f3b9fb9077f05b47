"""From files to what is said of them: traces read, explained, and two runs' compared."""

import os.path
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from broadgauge.results.folder.records_file import RECORDS_FILE
from broadgauge.results.measured_beside import (
    NOTHING_BESIDE,
    MeasuredBeside,
    reference_path,
)
from broadgauge.results.summary import summarise_stored
from broadgauge.running.traces_extra import check_reader
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.traces.attribution.comparing import ExplanationComparison, compare_explanations
from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.explanation import TraceExplanation
from broadgauge.traces.trace import RankTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTraces:
    """One job's traces and what they say; of two jobs the second's and the comparison, too."""

    traces: tuple[RankTrace, ...]
    explanation: TraceExplanation
    comparison: ExplanationComparison | None
    beside: MeasuredBeside = NOTHING_BESIDE
    """What was measured beside them without the profiler."""
    beside_other: MeasuredBeside = NOTHING_BESIDE
    """Of the second job's."""


def is_run(path: Path) -> bool:
    """A run folder, not a folder of traces?"""
    try:
        return (path / RECORDS_FILE).exists()
    except OSError:  # a name that is too long, a folder of someone else: who reads it says so
        return False


def explain_files(
    paths: Sequence[Path],
    *,
    against: Sequence[Path] = (),
    step_numbers: Sequence[int] | None = None,
    ranks_per_node: int | None = None,
    reference: Path | None = None,
) -> ExplainedTraces:
    """Reads the ranks' traces of one job and says where its steps' time went.

    Two folders, or two traces of one rank, are two runs: A and B. `against` names B, too.
    `ranks_per_node`: ranks are numbered node by node. `reference` is a run whose collectives' busbw
    stands beside the traces'. Raises InputError, RunFolderError.
    """
    beside = NOTHING_BESIDE if reference is None else beside_of_reference(reference, None)
    if not against and len(paths) == 2 and all(map(os.path.isdir, paths)):
        paths, against = paths[:1], paths[1:]
    traces = _read(paths)
    if not against and len(traces) == 2 and _is_of_one_rank(traces):
        traces, others = traces[:1], traces[1:]
    else:
        others = _read(against) if against else []
    asked = partial(explain, step_numbers=step_numbers, ranks_per_node=ranks_per_node)
    found = asked(traces)
    comparison = compare_explanations(found, asked(others)) if others else None
    return ExplainedTraces(
        traces=tuple(traces),
        explanation=found,
        comparison=comparison,
        beside=beside,
        beside_other=beside,
    )


def beside_of_reference(folder: Path, case: Case | None) -> MeasuredBeside:
    """The collectives of another run, on the network of this case; `None`: the only one it has."""
    path, missing = reference_path(summarise_stored(folder), case)
    return MeasuredBeside(probe=path, notes=() if missing is None else (missing,))


def _is_of_one_rank(traces: Sequence[RankTrace]) -> bool:
    return traces[0].rank is not None and traces[0].rank == traces[1].rank


def _read(paths: Sequence[Path]) -> list[RankTrace]:
    """Imported late: msgspec is an extra's."""
    for path in paths:
        if is_run(path):
            raise InputError(
                f"`{path}` is a run folder, and no trace",
                hint="`broadgauge explain RUN` reads a run's traces; among others name its files: "
                f"{path}/artifacts/*.trace.json.gz",
            )
    check_reader()
    from broadgauge.traces.reading.files import trace_files
    from broadgauge.traces.reading.reader import read_trace

    return [read_trace(path) for path in trace_files(paths)]
