"""What would a doctor say of a finished run? Its logs read again, its records and its settings.

What a record's findings say was read in bounds while the run went on; here all that is kept in
`logs/` is read, also of launches that left no record. Nothing is written.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.advise.trial_findings import lost_packets
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.files import open_sources
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.overview import JobOverview, job_overview
from broadgauge.doctor.log.path_matrix import PathMatrix, path_matrix
from broadgauge.doctor.log.reading import read_logs
from broadgauge.doctor.log.recorded import in_run
from broadgauge.results.folder.reading import StoredRun, read_run
from broadgauge.results.folder.run_folder import LOGS_FOLDER
from broadgauge.specs.case import Case
from broadgauge.specs.record import Finding, Record, Severity, Status

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
_RANK_LOG = re.compile(
    r"(?P<launch>(?P<planned>b\d+\.l\d+)(?:r\d+)?)\.rank(?P<rank>\d+)(?P<nccl>\.nccl\S*)?\.log"
)
_RANK = re.compile(r"\.rank(\d+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedFinding:
    """One finding, and where it holds."""

    finding: Finding
    cases: tuple[str, ...]
    """Labels; empty: of the run as a whole."""
    trials: tuple[str, ...]
    """Records that have it; empty: it was found in logs or settings alone."""
    launches: tuple[str, ...]
    ranks: tuple[int, ...]
    """Whose logs are its evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedCase:
    """One case of the plan."""

    key: str
    label: str
    launches: tuple[str, ...]
    """Whose logs were read."""
    overview: JobOverview | None
    """Of the last launch in which NCCL said something; None: in none."""
    paths: PathMatrix | None
    """Of the same; None: no channel is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A run, as a doctor sees it."""

    folder: Path
    experiment_name: str
    cases: tuple[ExaminedCase, ...]
    """In the plan's order, without those of a baseline."""
    findings: tuple[ExaminedFinding, ...]
    """The worst first."""
    notes: tuple[str, ...]
    """What could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A finding at one place."""

    finding: Finding
    cases: tuple[str, ...]
    launch: str | None = None
    trial: str | None = None

    @property
    def ranks(self) -> set[int]:
        return {int(rank) for line in self.finding.evidence for rank in _RANK.findall(line)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _LifeLogs:
    """What is left of one life of a launch."""

    launch: str
    cases: tuple[Case, ...]
    paths: tuple[Path, ...]


def examine_run(path: Path) -> Examination:
    """The run of this folder. Raises RunFolderError."""
    run = read_run(path)
    seen: list[_Seen] = []
    readings: dict[str, list[tuple[str, LogReading]]] = {}
    notes = list(run.notes)
    for logs in _life_logs(run):
        reading = read_logs(open_sources(logs.paths))
        notes += reading.problems
        for case in logs.cases:
            readings.setdefault(case.key, []).append((logs.launch, reading))
        seen += _of_logs(logs, reading, run.folder)
    seen += _of_records(run)
    return Examination(
        folder=run.folder,
        experiment_name=run.plan.experiment_name,
        cases=tuple(
            _examined_case(case, readings.get(case.key, []))
            for case in run.plan.cases
            if case.arm == "candidate"
        ),
        findings=_grouped(seen),
        notes=tuple(dict.fromkeys(notes)),
    )


def _examined_case(case: Case, readings: Sequence[tuple[str, LogReading]]) -> ExaminedCase:
    speaking = [reading for _, reading in readings if reading.num_nccl_lines]
    last = speaking[-1] if speaking else None
    return ExaminedCase(
        key=case.key,
        label=case.label,
        launches=tuple(launch for launch, _ in readings),
        overview=None if last is None else job_overview(last),
        paths=None if last is None else path_matrix(last),
    )


def _life_logs(run: StoredRun) -> Iterator[_LifeLogs]:
    """Of every life of a launch that left logs, in the order of their names."""
    by_key = {case.key: case for case in run.plan.cases}
    planned = {
        launch.launch_id: tuple(dict.fromkeys(trial.case_key for trial in launch.trials))
        for launch in run.plan.launches
    }
    found: dict[str, tuple[str, list[Path]]] = {}
    for path in sorted((run.folder / LOGS_FOLDER).glob("*.log")):
        match = _RANK_LOG.fullmatch(path.name)
        if match is not None and match["planned"] in planned:
            found.setdefault(match["launch"], (match["planned"], []))[1].append(path)
    for launch, (name, paths) in found.items():
        cases = tuple(by_key[key] for key in planned[name])
        yield _LifeLogs(launch=launch, cases=cases, paths=tuple(paths))


def _of_logs(logs: _LifeLogs, reading: LogReading, folder: Path) -> Iterator[_Seen]:
    labels = tuple(case.label for case in logs.cases)
    for finding in in_run(log_findings(reading), str(folder / LOGS_FOLDER)):
        yield _Seen(finding=finding, cases=labels, launch=logs.launch)


def _of_records(run: StoredRun) -> Iterator[_Seen]:
    """What is stored, and of failed trials their counters, which nobody has judged."""
    by_key = {case.key: case for case in run.plan.cases}
    for record in run.records:
        case = by_key.get(record.case_key)
        if case is None:
            continue
        for finding in (*record.findings, *_of_counters(case, record)):
            yield _Seen(
                finding=finding,
                cases=(case.label,),
                launch=record.launch_id,
                trial=record.record_id,
            )


def _of_counters(case: Case, record: Record) -> Iterable[Finding]:
    return () if record.status is Status.OK else lost_packets(case, record)


def _grouped(seen: Sequence[_Seen]) -> tuple[ExaminedFinding, ...]:
    """Those of one rule that differ in nothing but numbers together, as the first has it."""
    groups: dict[tuple[str, ...], list[_Seen]] = {}
    for each in seen:
        finding = each.finding
        kind = (finding.rule, finding.severity.value, _NUMBER.sub("#", finding.symptom))
        groups.setdefault(kind, []).append(each)
    order = (Severity.ERROR, Severity.WARNING, Severity.INFO)
    return tuple(
        sorted(map(_examined, groups.values()), key=lambda e: order.index(e.finding.severity))
    )


def _examined(group: Sequence[_Seen]) -> ExaminedFinding:
    return ExaminedFinding(
        finding=group[0].finding,
        cases=tuple(dict.fromkeys(label for each in group for label in each.cases)),
        trials=tuple(dict.fromkeys(each.trial for each in group if each.trial is not None)),
        launches=tuple(dict.fromkeys(each.launch for each in group if each.launch is not None)),
        ranks=tuple(sorted({rank for each in group for rank in each.ranks})),
    )
