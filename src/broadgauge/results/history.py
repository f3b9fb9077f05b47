"""How did one experiment's figures go over its runs?

The runs were not interleaved: a change from one to the next may be the machine's, and is marked so.
A case is followed by its label; where its key changed, so did what was measured, and no ratio is
given.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from broadgauge.results.comparing.compare_cases import (
    compare_across_runs,
    direction_of,
    headline_metrics,
)
from broadgauge.results.folder import disk
from broadgauge.results.folder.reading import PLAN_FILE, read_plan
from broadgauge.results.model import CaseComparison, CaseSummary, RunSummary
from broadgauge.results.summary import summarise_stored
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Environment, Record

_STAMP = re.compile(r"-(\d{8}T\d{6}Z)(-\d+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A run folder that can be read."""

    folder: Path
    experiment_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One case in one run."""

    run: str
    """Its folder's name."""
    started_unix_s: float
    case_key: str
    git_commit: str | None
    """Of the folder its commands ran in; None: no checkout, or not known."""
    broadgauge: str | None
    torch: str | None
    figure: Estimate
    is_same_case: bool
    """False where the settings are others than in the run before."""
    change: CaseComparison | None
    """Against the run before, not interleaved; None for the first, and where settings changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseHistory:
    """One case's headline metric, oldest run first."""

    label: str
    metric: str
    direction: str
    """`lower`, `higher` or `neither` is better."""
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    experiment_name: str
    num_runs: int
    cases: tuple[CaseHistory, ...]
    notes: tuple[str, ...]


def find_runs(parent: Path) -> tuple[tuple[FoundRun, ...], tuple[str, ...]]:
    """Every run in this folder, by folder name; and a note for each that is none, or is broken."""
    with disk.telling("read", parent):
        folders = sorted(path for path in parent.iterdir() if path.is_dir())
    runs: list[FoundRun] = []
    notes: list[str] = []
    for folder in folders:
        if not (folder / PLAN_FILE).exists():
            notes.append(f"{folder} was skipped: it has no {PLAN_FILE}")
            continue
        try:
            plan, _ = read_plan(folder)
        except RunFolderError as error:
            notes.append(f"{folder} was skipped: {error.message}")
            continue
        runs.append(FoundRun(folder=folder, experiment_name=plan.experiment_name))
    return tuple(runs), tuple(notes)


def history(experiment_name: str, runs: Iterable[FoundRun]) -> History:
    """This experiment's cases over these runs of it, oldest first."""
    summaries: list[tuple[float, RunSummary]] = []
    notes: list[str] = []
    for run in runs:
        if run.experiment_name != experiment_name:
            continue
        try:
            summary = summarise_stored(run.folder)
        except RunFolderError as error:
            notes.append(f"{run.folder} was skipped: {error.message}")
            continue
        if any(record.status == "ok" for record in summary.records):
            summaries.append((started_unix_s(summary.folder, summary.records), summary))
        else:
            notes.append(f"{run.folder} was skipped: no trial of it succeeded")
    summaries.sort(key=lambda item: (item[0], item[1].folder.name))
    return History(
        experiment_name=experiment_name,
        num_runs=len(summaries),
        cases=_cases(summaries),
        notes=tuple(notes),
    )


def started_unix_s(folder: Path, records: Sequence[Record]) -> float:
    """When did a run begin? Its first trial, else the time in its folder's name, else its plan's.

    Raises RunFolderError.
    """
    if records:
        return min(record.started_unix_s for record in records)
    stamp = _STAMP.search(folder.name)
    if stamp is not None:
        return datetime.strptime(stamp[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    with disk.telling("read", folder):
        return (folder / PLAN_FILE).stat().st_mtime


def _cases(summaries: Sequence[tuple[float, RunSummary]]) -> tuple[CaseHistory, ...]:
    """In the order in which the newest run has them, those it has not after them."""
    points: dict[tuple[str, str], list[Point]] = {}
    last: dict[tuple[str, str], CaseSummary] = {}
    for started_s, run in summaries:
        for summary in run.candidates:
            metric = headline_metrics(summary)[0]
            if metric not in summary.estimates:
                continue
            place = (summary.case.label, metric)
            point = _point(started_s, run, summary, last.get(place))
            points.setdefault(place, []).append(point)
            last[place] = summary
    newest = [s.case.label for s in summaries[-1][1].cases] if summaries else []
    ordered = sorted(
        points, key=lambda place: newest.index(place[0]) if place[0] in newest else len(newest)
    )
    return tuple(
        CaseHistory(
            label=place[0],
            metric=place[1],
            direction=direction_of(last[place], place[1]),
            points=tuple(points[place]),
        )
        for place in ordered
    )


def _point(
    started_s: float, run: RunSummary, summary: CaseSummary, before: CaseSummary | None
) -> Point:
    metric = headline_metrics(summary)[0]
    environment = _environment(run, summary)
    is_same = before is None or before.case.key == summary.case.key
    return Point(
        run=run.folder.name,
        started_unix_s=started_s,
        case_key=summary.case.key,
        git_commit=None if environment is None else environment.git_commit,
        broadgauge=None if environment is None else environment.broadgauge,
        torch=None if environment is None else environment.torch,
        figure=summary.estimates[metric],
        is_same_case=is_same,
        change=None
        if before is None or not is_same
        else compare_across_runs(before, summary, metric),
    )


def _environment(run: RunSummary, summary: CaseSummary) -> Environment | None:
    """The newest that a good trial of this case names."""
    names = [record.environment for record in summary.good if record.environment is not None]
    return run.environments.get(names[-1]) if names else None
