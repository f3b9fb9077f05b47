"""What would a doctor say of a finished run? Its logs read again, its records and its settings.

What a record's findings say was read in bounds while the run went on; here all that is kept in
`logs/` is read, also of launches that left no record. Nothing is written.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from broadgauge.advise.trial_findings import lost_packets
from broadgauge.doctor.answer import Subject, SubjectAnswer
from broadgauge.doctor.expectation import expect
from broadgauge.doctor.failed_trials import failed_trials, without_numbers
from broadgauge.doctor.host.variables import variable_findings
from broadgauge.doctor.log.answers import answers_of
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.files import Source, open_sources
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.overview import JobOverview, job_overview
from broadgauge.doctor.log.path_matrix import PathMatrix, path_matrix
from broadgauge.doctor.log.reading import read_logs
from broadgauge.doctor.log.recorded import in_run
from broadgauge.doctor.measured import judge_measured
from broadgauge.doctor.situation import Situation, situation_of
from broadgauge.platforms.meant_transport import rules_asked_for
from broadgauge.platforms.rank_environment import set_by_users
from broadgauge.results.folder.reading import StoredRun, read_run
from broadgauge.results.folder.run_folder import LOGS_FOLDER
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.records.record import Finding, Record, Status

_RANK_LOG = re.compile(
    r"(?P<launch>(?P<planned>b\d+\.l\d+)(?:r\d+)?)\.rank(?P<rank>\d+)(?P<nccl>\.nccl\S*)?\.log"
)
_OF_ONE_CASE = "busbw-"
"""How rules begin that judge a figure of one case."""
_RANK = re.compile(r"\.rank(\d+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosedFinding:
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
class DiagnosedCase:
    """One case of the plan."""

    key: str
    label: str
    launches: tuple[str, ...]
    """Whose logs were read."""
    overview: JobOverview | None
    """Of the last launch in which NCCL said something; None: in none."""
    paths: PathMatrix | None
    """Of the same; None: no channel is known."""
    answers: Mapping[Subject, SubjectAnswer]
    """Of the same: is RDMA on? Empty: NCCL said nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiagnosis:
    """A run, as a doctor sees it."""

    folder: Path
    experiment_name: str
    cases: tuple[DiagnosedCase, ...]
    """In the plan's order, without those of a baseline."""
    findings: tuple[DiagnosedFinding, ...]
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
    def kind(self) -> tuple[str, ...]:
        """Equal where nothing but numbers differs; a case's own figure is its own."""
        finding = self.finding
        own = self.cases if finding.rule.startswith(_OF_ONE_CASE) else ()
        return (finding.rule, finding.severity.value, without_numbers(finding.symptom), *own)

    @property
    def ranks(self) -> set[int]:
        return {int(rank) for line in self.finding.evidence for rank in _RANK.findall(line)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _LifeLogs:
    """What is left of one life of a launch."""

    launch: str
    cases: tuple[Case, ...]
    paths: tuple[Path, ...]


@dataclass(slots=True)
class _CaseLogs:
    """What was read of a case: of many launches no more than one reading is kept."""

    launches: list[str] = field(default_factory=list)
    last: LogReading | None = None
    """In which NCCL said something."""

    def take(self, launch: str, reading: LogReading) -> None:
        self.launches.append(launch)
        if reading.num_nccl_lines:
            self.last = reading


def diagnose_run(path: Path) -> RunDiagnosis:
    """The run of this folder. Raises RunFolderError."""
    run = read_run(path)
    seen: list[_Seen] = []
    by_case = {case.key: _CaseLogs() for case in run.plan.cases}
    notes = list(run.notes)
    for logs in _life_logs(run):
        reading = read_logs(_sources(logs.paths, notes))
        notes += reading.problems
        for case in logs.cases:
            by_case[case.key].take(logs.launch, reading)
        seen += _of_logs(logs, reading, run.folder)
    seen += _of_records(run)
    seen += _of_variables(run)
    for case in run.plan.cases:
        seen += _of_bandwidth(run, case, by_case[case.key].last)
    return RunDiagnosis(
        folder=run.folder,
        experiment_name=run.plan.experiment_name,
        cases=tuple(
            _diagnosed_case(case, by_case[case.key])
            for case in run.plan.cases
            if case.arm == "candidate"
        ),
        findings=_grouped(seen),
        notes=tuple(dict.fromkeys(notes)),
    )


def _sources(paths: Sequence[Path], notes: list[str]) -> Iterator[Source]:
    """Of those that can be opened; the others are noted."""
    for path in paths:
        try:
            yield from open_sources([path])
        except InputError as error:
            notes.append(error.message)


def _diagnosed_case(case: Case, logs: _CaseLogs) -> DiagnosedCase:
    last = logs.last
    return DiagnosedCase(
        key=case.key,
        label=case.label,
        launches=tuple(logs.launches),
        overview=None if last is None else job_overview(last),
        answers={} if last is None else answers_of(last),
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
    """But what the launch's cases themselves ask for."""
    labels = tuple(case.label for case in logs.cases)
    asked = frozenset.intersection(*map(rules_asked_for, logs.cases))
    for finding in in_run(log_findings(reading), str(folder / LOGS_FOLDER)):
        if finding.rule not in asked:
            yield _Seen(finding=finding, cases=labels, launch=logs.launch)


def _of_records(run: StoredRun) -> Iterator[_Seen]:
    """What is stored, and of failed trials why, and their counters, which nobody has judged."""
    by_key = {case.key: case for case in run.plan.cases}
    records = [record for record in run.records if record.case_key in by_key]
    found = [(each.finding, record) for each in failed_trials(records) for record in each.records]
    for record in records:
        own = (*record.findings, *_of_counters(by_key[record.case_key], record))
        found += [(finding, record) for finding in own]
    for finding, record in found:
        yield _Seen(
            finding=finding,
            cases=(by_key[record.case_key].label,),
            launch=record.launch_id,
            trial=record.record_id,
        )


def _of_counters(case: Case, record: Record) -> Iterable[Finding]:
    return () if record.status is Status.OK else lost_packets(case, record)


def _of_variables(run: StoredRun) -> Iterator[_Seen]:
    """What users set for NCCL, in the experiment or around it, by environment and case."""
    by_key = {case.key: case for case in run.plan.cases}
    used = dict.fromkeys((record.environment or "", record.case_key) for record in run.records)
    for name, key in used:
        environment, case = run.environments.get(name), by_key.get(key)
        if environment is None or case is None or case.backend != "nccl":
            continue
        is_emulated = environment.platform == "emulated"
        variables = set_by_users(environment.variables, case, is_emulated=is_emulated)
        for finding in variable_findings(variables, version=environment.nccl, facts=None):
            yield _Seen(finding=finding, cases=(case.label,))


def _of_bandwidth(run: StoredRun, case: Case, reading: LogReading | None) -> Iterator[_Seen]:
    """Is the busbw of its largest all_reduce what it should be? Of what was not emulated."""
    rows = [
        (row, record)
        for record in run.records
        if record.case_key == case.key and record.status is Status.OK
        for row in record.collectives
        if row.op == "all_reduce" and row.busbw_gbyte_per_s is not None
    ]
    is_emulated = case.link is not None and case.link.face is None
    if is_emulated or reading is None or not rows:
        return
    size_bytes = max(row.size_bytes for row, _ in rows)
    busbw = [row.busbw_gbyte_per_s for row, _ in rows if row.size_bytes == size_bytes]
    situation = _situation(case, reading, _gpu(run, rows[-1][1]))
    yield _Seen(
        finding=judge_measured(expect(situation), sum(busbw) / len(busbw), size_bytes=size_bytes),
        cases=(case.label,),
        trial=rows[-1][1].record_id,
    )


def _situation(case: Case, reading: LogReading, gpu: str | None) -> Situation:
    """What the experiment says of its network comes before what the log tells."""
    found = None if case.link is None else case.link.face
    if found is None:
        return situation_of(reading, gpu=gpu)
    situation = situation_of(reading, gpu=gpu, nic_gbps=found.nominal_gbps)
    return situation if found.transport is None else replace(situation, transport=found.transport)


def _gpu(run: StoredRun, record: Record) -> str | None:
    environment = run.environments.get(record.environment or "")
    return environment.gpus[0].name if environment is not None and environment.gpus else None


def _grouped(seen: Sequence[_Seen]) -> tuple[DiagnosedFinding, ...]:
    """Those of one rule that differ in nothing but numbers together, as the first has it."""
    groups: dict[tuple[str, ...], list[_Seen]] = {}
    for each in seen:
        groups.setdefault(each.kind, []).append(each)
    return tuple(sorted(map(_diagnosed, groups.values()), key=lambda e: e.finding.severity.rank))


def _diagnosed(group: Sequence[_Seen]) -> DiagnosedFinding:
    return DiagnosedFinding(
        finding=group[0].finding,
        cases=tuple(dict.fromkeys(label for each in group for label in each.cases)),
        trials=tuple(dict.fromkeys(each.trial for each in group if each.trial is not None)),
        launches=tuple(dict.fromkeys(each.launch for each in group if each.launch is not None)),
        ranks=tuple(sorted({rank for each in group for rank in each.ranks})),
    )
