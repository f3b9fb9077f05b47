"""How do files that others' programs wrote become a run folder?

Each measurement is a launch of its case; of a case that comes again, in the same file or in
another, the next launch. The files themselves are kept in the folder, beside the first record that
was read from each.
"""

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge import __version__
from broadgauge.doctor.diagnosis import exit_code_of
from broadgauge.importing.formats import read_measured
from broadgauge.importing.judging import MachineGiven, findings_of_log, judged
from broadgauge.importing.measured import FileMeasured, ImportedMeasurement, ShapeGiven
from broadgauge.importing.source import SourceFile, read_files
from broadgauge.messages.rank import Artifact
from broadgauge.results.folder import disk
from broadgauge.results.folder.artifacts import MOST_ARTIFACTS
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.run_path import RUNS_FOLDER
from broadgauge.specs.base import NAME_PATTERN
from broadgauge.specs.errors import ExitCode, InputError
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.imported import IMPORTED, NO_LABEL, ImportedProgram
from broadgauge.specs.records.record import (
    Environment,
    Finding,
    GpuFacts,
    Record,
    Severity,
    Status,
)
from broadgauge.specs.text.writing import dump_data

MOST_MEASUREMENTS = 10_000
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What the user asked for."""

    files: Sequence[str]
    """Each a file, a folder of logs or `-`, perhaps with a label: `roce=all_reduce.txt`."""
    program: ImportedProgram | None = None
    """Who wrote them; None: it is told from what is in them."""
    name: str = IMPORTED
    """Of the run."""
    shape: ShapeGiven = field(default_factory=ShapeGiven)
    machine: MachineGiven = field(default_factory=MachineGiven)
    runs_folder: Path = Path(RUNS_FOLDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedImport:
    """The run that was made."""

    folder: Path
    location: str
    """As the user would type it."""
    records: tuple[Record, ...]
    notes: tuple[str, ...]
    """What was passed over, in sentences."""

    @property
    def exit_code(self) -> ExitCode:
        """As of a run where a measurement says itself that it failed; else as the doctor's."""
        if any(record.status is not Status.OK for record in self.records):
            return ExitCode.TRIALS_FAILED
        return exit_code_of(finding for record in self.records for finding in record.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """One measurement as a trial."""

    measured: ImportedMeasurement
    files: tuple[SourceFile, ...]
    findings: tuple[Finding, ...]
    block: int
    trial_id: str
    launch_id: str


def import_files(request: ImportRequest) -> FinishedImport:
    """Reads all, then writes. Raises InputError (what a file holds) and RunFolderError."""
    if re.fullmatch(NAME_PATTERN, request.name) is None:
        raise InputError(
            f"--name {request.name}: no name of a run",
            hint="lower-case letters, digits, `-`, `_` and `.`: --name before-the-upgrade",
        )
    found = _read_all(request)
    planned = _planned(found, request.machine)
    files = tuple(dict.fromkeys(file.name for each in found for file in each.files))
    plan = _plan(request.name, planned, files)
    with RunFolder.create(
        request.runs_folder,
        plan=plan,
        experiment_yaml=_what_was_imported(planned),
        started_unix_s=time.time(),
    ) as folder:
        _write(folder, planned)
        return FinishedImport(
            folder=folder.path,
            location=folder.location,
            records=tuple(folder.records),
            notes=tuple(note for each in found for note in each.notes),
        )


def _read_all(request: ImportRequest) -> list[FileMeasured]:
    by_label: dict[str, list[SourceFile]] = {}
    for argument in request.files:
        label, path = split_label(argument)
        by_label.setdefault(label, []).extend(read_files(path))
    found: list[FileMeasured] = []
    for label, files in by_label.items():
        for each in read_measured(files, request.shape, request.program):
            labelled = tuple(measured.labelled(label) for measured in each.measured)
            found.append(FileMeasured(files=each.files, measured=labelled, notes=each.notes))
    num_measured = sum(len(each.measured) for each in found)
    if num_measured > MOST_MEASUREMENTS:
        raise InputError(
            f"{num_measured:,} measurements are more than the {MOST_MEASUREMENTS:,} of one run",
            hint="import fewer files at once",
        )
    return found


def split_label(argument: str) -> tuple[str, str]:
    """`roce=all_reduce.txt` → `roce` and the file; a file of that very name comes first."""
    label, equals, path = argument.partition("=")
    if not equals or Path(argument).exists() or "/" in label:
        return NO_LABEL, argument
    if re.fullmatch(NAME_PATTERN, label) is None:
        raise InputError(
            f"{argument}: `{label}` is no label, and no such file is there",
            hint="lower-case letters, digits, `-`, `_` and `.`: roce=all_reduce.txt",
        )
    return label, path


def _planned(found: Sequence[FileMeasured], given: MachineGiven) -> list[_Planned]:
    """Every measurement with its launch, whose number is the case's in all blocks."""
    numbers: dict[str, int] = {}
    times: Counter[str] = Counter()
    planned: list[_Planned] = []
    for each in found:
        readings = [findings_of_log(file) for file in each.files]
        own = tuple(finding for findings, _ in readings for finding in findings)
        reading = next((reading for _, reading in readings if reading is not None), None)
        for measured in each.measured:
            key = measured.case.key
            number, block = numbers.setdefault(key, len(numbers)), times[key]
            times[key] += 1
            verdict = judged(measured, given, reading)
            findings = (
                _provenance(measured, each.files),
                *(() if verdict is None else (verdict,)),
                *own,
            )
            launch_id = f"b{block}.l{number}"
            planned.append(
                _Planned(
                    measured=measured,
                    files=each.files,
                    findings=findings,
                    block=block,
                    launch_id=launch_id,
                    trial_id=f"{launch_id}.t0",
                )
            )
    return sorted(planned, key=lambda each: each.block)


def _provenance(measured: ImportedMeasurement, files: Sequence[SourceFile]) -> Finding:
    """Whose figures are these? Said of every record."""
    assert measured.case.imported is not None
    version = f" {measured.facts.version}" if measured.facts.version else ""
    program = f"{measured.case.imported.program}{version}"
    kept = [
        f"{file.name}: SHA-256 {file.sha256}"
        + ("" if file.without_secrets() == file.content else ", secrets are masked in the copy")
        for file in files
    ]
    names = " and ".join(f"{f.base_name} (SHA-256 {f.sha256[:_SHOWN_DIGITS]}…)" for f in files[:2])
    more = f" and {len(files) - 2} files more" if len(files) > 2 else ""
    return Finding(
        rule="imported",
        severity=Severity.INFO,
        symptom=f"imported: measured by {program}, not by Broadgauge: {names}{more}",
        evidence=(measured.place, *kept, *measured.notes),
    )


def _plan(name: str, planned: Sequence[_Planned], files: Sequence[str]) -> Plan:
    cases = {each.measured.case.key: each.measured.case for each in planned}
    shown = ", ".join(Path(file).name for file in files[:4])
    more = f" and {len(files) - 4} more" if len(files) > 4 else ""
    return Plan(
        experiment_name=name,
        description=f"imported from {shown}{more}: measured by other programs",
        seed=0,
        cases=tuple(cases.values()),
        launches=tuple(
            PlannedLaunch(
                launch_id=each.launch_id,
                block=each.block,
                trials=(
                    PlannedTrial(trial_id=each.trial_id, case_key=each.measured.case.key, trial=0),
                ),
                expected_s=0.0,
            )
            for each in planned
        ),
        expected_s=0.0,
    )


def _what_was_imported(planned: Sequence[_Planned]) -> str:
    """In the place of the experiment: which measurement is from where."""
    return dump_data(
        {
            "imported": [
                {
                    "trial": each.trial_id,
                    "case": each.measured.case.label,
                    "place": each.measured.place,
                    "files": [{"name": file.name, "sha256": file.sha256} for file in each.files],
                    "settings": dict(
                        each.measured.case.imported.settings if each.measured.case.imported else {}
                    ),
                }
                for each in planned
            ]
        }
    )


def _write(folder: RunFolder, planned: Sequence[_Planned]) -> None:
    kept: set[str] = set()
    for position, each in enumerate(planned):
        new = [file for file in each.files if file.name not in kept][:MOST_ARTIFACTS]
        kept |= {file.name for file in new}
        copies = [_copied(folder.path, file, each.trial_id, i) for i, file in enumerate(new)]
        environment = folder.add_environment(_environment(each.measured))
        try:
            folder.append(_record(each, position, environment), {}, copies)
        finally:
            for copy in copies:
                disk.remove(Path(copy.path))


def _copied(folder: Path, file: SourceFile, trial_id: str, number: int) -> Artifact:
    """A file that the folder takes as what the trial left."""
    import hashlib

    content = file.without_secrets()
    path = folder / f"import{number}{disk.PART}"
    with disk.telling("write", path):
        path.write_bytes(content)
    plain = _NO_FILE_NAME.sub("-", file.base_name).lstrip("._-")[-80:].lstrip("._-") or "file"
    return Artifact(
        trial_id=trial_id,
        name=plain if not number else f"{number}-{plain}",
        path=str(path),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        kind="log",
    )


def _record(each: _Planned, position: int, environment: str) -> Record:
    measured, case = each.measured, each.measured.case
    started_s = measured.facts.started_unix_s
    if started_s is None:
        written = [file.changed_unix_s for file in each.files if file.changed_unix_s is not None]
        started_s = min(written, default=time.time())
    return Record(
        **measured.measurement.model_dump(),
        record_id=each.trial_id,
        case_key=case.key,
        workload=case.workload.name,
        network=case.network_name,
        shape=case.shape,
        launch_id=each.launch_id,
        block=each.block,
        trial=0,
        position=position,
        started_unix_s=started_s,
        ended_unix_s=started_s + (measured.facts.elapsed_s or 0.0),
        status=Status.OK if measured.error is None else Status.FAILED,
        error=measured.error,
        environment=environment,
        findings=each.findings,
    )


def _environment(measured: ImportedMeasurement) -> Environment:
    """What the file tells; nothing of this machine."""
    return Environment(
        broadgauge=__version__,
        platform=IMPORTED,
        nccl=measured.facts.nccl,
        kernel=measured.facts.kernel,
        gpus=tuple(GpuFacts(name=name) for name in measured.facts.gpus),
    )
