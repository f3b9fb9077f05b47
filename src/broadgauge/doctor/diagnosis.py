"""What is said of a job by its logs, of this machine, or of both? All of it at once."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.catalog.gpus import find_gpu_named
from broadgauge.doctor.answer import Subject, SubjectAnswer, expectation_findings, is_unanswered
from broadgauge.doctor.expectation import BandwidthExpectation, expect
from broadgauge.doctor.host.answers import host_answers
from broadgauge.doctor.host.findings import host_findings
from broadgauge.doctor.log.answers import answers_of
from broadgauge.doctor.log.conclusions.network_choice import RDMA_MISSING
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.files import open_sources
from broadgauge.doctor.log.findings import (
    is_silent,
    log_findings,
    silence_findings,
    unread_findings,
)
from broadgauge.doctor.log.loading import read_rules, shipped_rules
from broadgauge.doctor.log.overview import JobOverview, job_overview
from broadgauge.doctor.log.path_matrix import PathMatrix, path_matrix
from broadgauge.doctor.log.reading import read_logs
from broadgauge.doctor.measured import measured_findings
from broadgauge.doctor.situation import situation_of
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.errors import ExitCode, InputError
from broadgauge.specs.records.record import Finding, Severity
from broadgauge.specs.units import parse_rate_gbps

_MOST_BUSBW = 1e6
_NIC_GBPS = (0.001, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the user knows and logs do not tell."""

    busbw_gbyte_per_s: float | None = None
    """Measured, of a large all-reduce."""
    gpu: str | None = None
    """As the catalog names it."""
    nic_gbps: float | None = None
    """Of one NIC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Findings and what they rest on. None: not asked."""

    findings: tuple[Finding, ...]
    """The worst first."""
    answers: Mapping[Subject, SubjectAnswer]
    """Is RDMA on, and the like: of the logs; without logs of what this machine could do."""
    wanted: tuple[Subject, ...]
    """That were expected to be on."""
    job: JobOverview | None
    matrix: PathMatrix | None
    expected: BandwidthExpectation | None
    host: HardwareFacts | None
    is_silent: bool
    """Is no line of the logs known?"""

    @property
    def exit_code(self) -> ExitCode:
        """As the command's: 0, 8 after warnings, 9 after errors, 10 where nothing is known, or
        where nobody can tell what was expected."""
        unknown = is_unanswered(self.answers, self.wanted)
        return exit_code_of(self.findings, is_unanswered=unknown, is_silent=self.is_silent)


def diagnose(
    *,
    reading: LogReading | None = None,
    host: HardwareFacts | None = None,
    wanted: Sequence[Subject] = (),
    known: Known = Known(),
) -> Diagnosis:
    """Of logs, of this machine, or of both: one of them must be there."""
    answers = answers_of(reading) if reading is not None else host_answers(_there(host))
    found = [*expectation_findings(answers, wanted)]
    expected = None
    if reading is not None:
        situation = situation_of(reading, gpu=known.gpu, nic_gbps=known.nic_gbps)
        expected = expect(situation)
        found += _of_logs(reading, expected, known)
    if Subject.TCP in wanted:
        found = [each for each in found if each.rule != RDMA_MISSING]
    found += () if host is None else host_findings(host)
    return Diagnosis(
        findings=tuple(sorted(found, key=lambda each: each.severity.rank)),
        answers=answers,
        wanted=tuple(wanted),
        job=None if reading is None else job_overview(reading),
        matrix=None if reading is None else path_matrix(reading),
        expected=expected,
        host=host,
        is_silent=reading is not None and is_silent(reading),
    )


def read_job(
    paths: Iterable[str], *, rule_files: Iterable[Path] = (), known: Known = Known()
) -> LogReading:
    """Logs of one job, with rules of the user's own beside the shipped ones. Raises InputError."""
    own = [rule for path in rule_files for rule in read_rules(path)]
    reading = read_logs(open_sources(list(paths)), (*own, *shipped_rules()))
    if known.gpu is not None:
        reading.gpu_names.add(known.gpu)
    return reading


def known_of(
    *,
    busbw: str | float | None,
    gpu: str | None,
    nic_rate: str | float | None,
    named: Callable[[str], str],
) -> Known:
    """What a user gives, read. `named`: how the value's name is written in an error. Raises
    InputError."""
    return Known(
        busbw_gbyte_per_s=None if busbw is None else _busbw(busbw, named("busbw")),
        gpu=None if gpu is None else find_gpu_named(gpu).name,
        nic_gbps=None if nic_rate is None else _nic_gbps(nic_rate, named("nic-rate")),
    )


def exit_code_of(
    findings: Iterable[Finding], *, is_unanswered: bool = False, is_silent: bool = False
) -> ExitCode:
    """An error is one whatever else is unknown; what was expected and is unknown must not pass as
    a warning does."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return ExitCode.DOCTOR_ERRORS
    if is_unanswered:
        return ExitCode.DOCTOR_UNKNOWN
    if Severity.WARNING in severities:
        return ExitCode.DOCTOR_WARNINGS
    return ExitCode.DOCTOR_UNKNOWN if is_silent else ExitCode.OK


def _there(host: HardwareFacts | None) -> HardwareFacts:
    assert host is not None, "neither logs nor a machine"
    return host


def _of_logs(reading: LogReading, expected: BandwidthExpectation, known: Known) -> list[Finding]:
    measured = measured_findings(reading, expected, measured_gbyte_per_s=known.busbw_gbyte_per_s)
    told = (*log_findings(reading), *unread_findings(reading), *silence_findings(reading))
    return [*told, *measured]


def _busbw(given: str | float, name: str) -> float:
    try:
        busbw = float(given)
    except ValueError:
        busbw = math.nan
    if not 0 < busbw < _MOST_BUSBW:
        raise InputError(
            f"{name}: {given!r} is no bus bandwidth",
            hint=f"a number of 10⁹ byte/s, as nccl-tests prints it: {name} 3.4",
        )
    return busbw


def _nic_gbps(given: str | float, name: str) -> float:
    try:
        rate = parse_rate_gbps(given)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    if not isinstance(rate, float | int) or not _NIC_GBPS[0] <= rate <= _NIC_GBPS[1]:
        raise InputError(f"{name}: {given!r} is no rate of a NIC", hint=f"{name} '400 Gbit/s'")
    return float(rate)
