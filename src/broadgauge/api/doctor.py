"""Is RDMA really on, and why is a job slow, stuck or dead? As `broadgauge doctor` says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broadgauge.api.asking import OneOrMore, PathLike, path_of, run_of, shown
from broadgauge.api.display import Displayed, plain_text, preformatted
from broadgauge.api.table import Table, table_of_rows
from broadgauge.doctor.answer import Subject
from broadgauge.doctor.diagnosis import Known, diagnose, exit_code_of, known_of, read_job
from broadgauge.doctor.host.findings import host_findings
from broadgauge.doctor.host.reading import read_hardware
from broadgauge.report.doctor.as_json import doctor_document, run_diagnosis_document
from broadgauge.report.doctor.diagnosis import print_diagnosis
from broadgauge.report.doctor.host import print_host
from broadgauge.report.doctor.run_diagnosis import print_run_diagnosis
from broadgauge.report.doctor.terminal import counted, print_findings
from broadgauge.results.run_path import RUNS_FOLDER
from broadgauge.running.diagnosing import RunDiagnosis, diagnose_run
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.records.record import Finding

if TYPE_CHECKING:
    from rich.console import Console

    from broadgauge.doctor.diagnosis import Diagnosis
    from broadgauge.messages.hardware import HardwareFacts


_COLUMNS = ("severity", "rule", "symptom", "cause", "fix", "confidence", "evidence")
_NAMES = {"busbw": "busbw_gbyte_per_s", "nic-rate": "nic_rate"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diagnosed(Displayed):
    """What `doctor` found; a notebook shows it as the command prints it."""

    findings: tuple[Finding, ...]
    """Symptom, evidence, cause, fix and confidence of each, the worst first."""
    answers: Mapping[str, str]
    """`rdma`, `gdr`, `nvlink`, `tcp` → on, in part, off, not needed or unknown. Empty: of a run,
    whose cases have each their own in `document`."""
    exit_code: int
    """As the command's: 0, 8 after warnings, 9 after errors, 10 where nothing is known."""
    document: Mapping[str, Any]
    """All of it, as `broadgauge doctor --json` prints it."""
    _text: str

    def __repr__(self) -> str:
        return f"<Diagnosed: {counted(self.findings)}>"

    @property
    def table(self) -> Table:
        """One row a finding.

        Columns: severity (error, warning, info), rule, symptom, cause, fix, confidence (certain,
        likely, possible), evidence (one line each).
        """
        return table_of_rows("findings", [_row(each) for each in self.findings], _COLUMNS)

    def _html(self) -> Any:
        return preformatted(self._text)

    def _plain(self) -> str:
        return self._text


def doctor(
    logs: OneOrMore[PathLike] | None = None,
    *,
    run: PathLike | None = None,
    host: bool = False,
    expect: OneOrMore[str] = (),
    rules: OneOrMore[PathLike] = (),
    busbw_gbyte_per_s: float | None = None,
    gpu: str | None = None,
    nic_rate: str | float | None = None,
    runs_folder: PathLike = RUNS_FOLDER,
) -> Diagnosed:
    """Says whether RDMA is on, and why a job is slow, stuck or dead.

    logs: of one job, of one or many ranks: files (compressed too) and folders.
    run: a run instead, its folder, `"last"`: its logs, records and settings.
    host: this machine or pod, too: NICs, adapters, GPUs, limits, variables.
    expect: `rdma`, `gdr`, `nvlink` or `tcp`, one or several: an error if it is not on.
    rules: files of rules of your own (docs/doctor-rules.md).
    busbw_gbyte_per_s: a bus bandwidth of a large all-reduce, in 10⁹ byte/s: is it normal for what
        the logs tell?
    gpu, nic_rate: what the logs do not tell: `"h100-sxm"`, `"400 Gbit/s"`.

    Raises InputError where a file can't be read or is not meant so, RunFolderError of a run.

    Example: `broadgauge.doctor("train.log", expect="rdma").table.to_pandas()`
    """
    known = known_of(busbw=busbw_gbyte_per_s, gpu=gpu, nic_rate=nic_rate, named=_NAMES.__getitem__)
    paths = [str(path_of("logs", each)) for each in _several(logs)]
    rule_files = [path_of("rules", each) for each in _several(rules)]
    wanted = [_subject(each) for each in _several(expect)]
    if run is None and not paths and not host:
        raise InputError("doctor of what?", hint='logs="train.log", run="last" or host=True')
    facts = read_hardware() if host else None
    if run is not None:
        if paths or wanted or rule_files or known != Known():
            raise InputError(
                "run= brings its own logs, and knows what is meant",
                hint="logs=, expect=, rules=, gpu= and the like belong to logs: ask twice",
            )
        return _of_run(diagnose_run(run_of("run", run, runs_folder)), facts)
    reading = read_job(paths, rule_files=rule_files, known=known) if paths else None
    return _of(diagnose(reading=reading, host=facts, wanted=wanted, known=known))


def _several(given: object) -> Sequence[Any]:
    """`None`, one, or several."""
    if given is None:
        return ()
    return list(given) if isinstance(given, list | tuple) else [given]


def _subject(given: str) -> Subject:
    try:
        return Subject(given)
    except ValueError:
        names = [each.value for each in Subject]
        hint = did_you_mean(str(given), names) or f"one of {', '.join(names)}"
        raise InputError(f"expect={shown(given)}: not known", hint=hint) from None


def _of(diagnosis: Diagnosis) -> Diagnosed:
    return Diagnosed(
        findings=diagnosis.findings,
        answers={each.value: answer.state.value for each, answer in diagnosis.answers.items()},
        exit_code=int(diagnosis.exit_code),
        document=doctor_document(diagnosis),
        _text=plain_text(lambda console: print_diagnosis(diagnosis, console)),
    )


def _of_run(diagnosis: RunDiagnosis, facts: HardwareFacts | None) -> Diagnosed:
    of_host = () if facts is None else host_findings(facts)
    found = (*(each.finding for each in diagnosis.findings), *of_host)

    def print_to(console: Console) -> None:
        print_run_diagnosis(diagnosis, console)
        if facts is not None:
            print_host(facts, console)
            print_findings(of_host, console)

    return Diagnosed(
        findings=found,
        answers={},
        exit_code=int(exit_code_of(found)),
        document=run_diagnosis_document(diagnosis, of_host, facts),
        _text=plain_text(print_to),
    )


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "rule": finding.rule,
        "symptom": finding.symptom,
        "cause": finding.cause,
        "fix": finding.fix,
        "confidence": None if finding.confidence is None else finding.confidence.value,
        "evidence": "\n".join(finding.evidence),
    }
