"""Where did the time of traced steps go? Asked from Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from broadgauge.api.asking import OneOrMore, PathLike, count, path_of, run_of, values_of
from broadgauge.api.display import Displayed, plain_text, preformatted
from broadgauge.api.table import Table, table_of_rows
from broadgauge.report.markup import Html
from broadgauge.report.terminal_traces import print_comparison, print_explanation
from broadgauge.report.traces_json import comparison_document, explanation_document
from broadgauge.running.explaining import ExplainedTraces, explain_files, is_run
from broadgauge.running.explaining_runs import explain_run
from broadgauge.specs.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explained:
    """One job's steps; of a run one of its cases."""

    traces: ExplainedTraces
    label: str = ""
    trial: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explained(Displayed):
    """What `explain` answers; a notebook shows what the command prints."""

    _cases: tuple[_Explained, ...]
    _run: Path | None = None
    """The first run; None: traces were named."""

    def __repr__(self) -> str:
        if len(self._cases) > 1:
            return f"<Explained: {len(self._cases)} cases>"
        found = self._found.explanation
        return f"<Explained: {len(found.ranks)} ranks, {found.num_steps} steps>"

    @property
    def cases(self) -> dict[str, Explained]:
        """Of a run: its traced cases by label, each an `Explained`; empty of traces."""
        if self._run is None:
            return {}
        return {each.label: Explained((each,), self._run) for each in self._cases}

    @property
    def _found(self) -> ExplainedTraces:
        if len(self._cases) > 1:
            labels = ", ".join(each.label for each in self._cases[:4])
            raise InputError(
                f"the run has {len(self._cases)} traced cases: {labels}",
                hint="`explained.cases[LABEL]` is one of them",
            )
        return self._cases[0].traces

    @property
    def step_time_s(self) -> float:
        """The mean over ranks and steps, of the first run. Raises InputError where a run has
        several traced cases, as the next two do."""
        return self._found.explanation.step_time_s

    @property
    def parts_s(self) -> dict[str, float | None]:
        """A step's parts, as the mean over ranks and steps; they add up to `step_time_s`."""
        return self._found.explanation.parts_s()

    @property
    def collectives(self) -> Table:
        """One row a kind, group and size: op, group, ranks, nodes, message_bytes, dtype,
        calls_per_step, time_s (a rank's call, with its waiting), transfer_s, waiting_s, exposed_s
        (a step's), busbw_gbyte_per_s, probe_busbw_gbyte_per_s (what the reference's collectives
        reached at this size) and probe_share_ratio."""
        rows: Any = explanation_document(self._found.explanation, self._found.beside)["collectives"]
        return table_of_rows("collectives", rows)

    @property
    def document(self) -> dict[str, object]:
        """What `explain --json` prints."""
        if self._run is None:
            return _document(self._found)
        cases = [{"case": c.label, "trial": c.trial, **_document(c.traces)} for c in self._cases]
        return {"run": str(self._run), "cases": cases}

    def _html(self) -> Html:
        return preformatted(self._plain())

    def _plain(self) -> str:
        if self._run is None:
            return _text(self._found)
        parts = (f"{c.label}, trial {c.trial}\n{_text(c.traces)}" for c in self._cases)
        return "\n".join(parts)


def _document(found: ExplainedTraces) -> dict[str, object]:
    if found.comparison is not None:
        return comparison_document(found.comparison, found.beside, found.beside_other)
    return explanation_document(found.explanation, found.beside)


def _text(found: ExplainedTraces) -> str:
    if found.comparison is not None:
        return plain_text(partial(print_comparison, found.comparison))
    return plain_text(partial(print_explanation, found.explanation, beside=found.beside))


def explain(
    traces: OneOrMore[PathLike],
    *,
    against: OneOrMore[PathLike] | None = None,
    steps: OneOrMore[int] | None = None,
    ranks_per_node: int | None = None,
    reference: PathLike | None = None,
    runs_folder: PathLike = "runs",
) -> Explained:
    """Where the time of traced steps went: compute, communication, waiting, idle.

    traces: the profiler's files of one job, one a rank, or a folder of them. Or a run with traced
        steps, as `open_run` takes it: then `cases` has each. against: the same of
        another run, which is compared; two folders, or two traces of one rank, are, too.
    steps: only these, by the profiler's number. ranks_per_node: tells communication within nodes
        from that between them; without it the hosts do that the files' names tell; a run knows.
        reference: a run whose collectives say what the path of these traces reaches.

    Raises InputError: no traces, cut off, not of one job; RunFolderError: no such reference.

    Example: `explain("traces/").parts_s["exposed_communication"]`
    """
    paths = _paths("traces", traces, runs_folder)
    others = () if against is None else _paths("against", against, runs_folder)
    numbers = None if steps is None else values_of("steps", steps, count)
    beside = None if reference is None else path_of("reference", reference)
    runs = [path for path in (*paths, *others) if is_run(path)]
    if runs and len(runs) == len(paths) + len(others) <= 2:
        if ranks_per_node is not None:
            raise InputError("ranks_per_node: the run says it", hint="leave it out")
        found = explain_run(
            runs[0],
            against=runs[1] if len(runs) == 2 else None,
            step_numbers=numbers,
            reference=beside,
        )
        cases = (_Explained(traces=c.traces, label=c.label, trial=c.trial) for c in found)
        return Explained(tuple(cases), runs[0])
    asked = None if ranks_per_node is None else count("ranks_per_node", ranks_per_node)
    files = explain_files(
        paths, against=others, ranks_per_node=asked, step_numbers=numbers, reference=beside
    )
    return Explained((_Explained(traces=files),))


def _paths(name: str, given: object, runs_folder: PathLike) -> list[Path]:
    """Files and folders; what is none of them may be a run's name."""
    paths: list[Path] = values_of(name, given, path_of)
    return [path if path.exists() else run_of(name, str(path), runs_folder) for path in paths]
