"""`broadgauge doctor`: is RDMA really on, and why is this job slow or stuck?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.collector import no_collections
from broadgauge.results.run_path import RUN_HELP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broadgauge.doctor.answer import Subject, SubjectAnswer
    from broadgauge.doctor.expectation import BandwidthExpectation
    from broadgauge.doctor.log.facts import LogReading
    from broadgauge.messages.hardware import HardwareFacts
    from broadgauge.specs.record import Finding


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="say whether RDMA is on, and why a job is slow or stuck",
        description="Reads logs of a training job, this machine, or a run, and says what is wrong: "
        "symptom, evidence, cause, fix, and how sure it is. The first line says whether RDMA is "
        "on. Ends with 0 where nothing is worse than a note, with 8 after warnings, 9 after "
        "errors, and 10 where nothing is known, so it serves as a health check.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help=f"{RUN_HELP}: its logs and counters")
    parser.add_argument(
        "--log",
        nargs="+",
        metavar="FILE",
        help="logs of one job, of one or many ranks: files (compressed too), folders, - for stdin",
    )
    parser.add_argument(
        "--host",
        action="store_true",
        help="this machine or pod: NICs, adapters, GPUs, limits, variables",
    )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        choices=("rdma", "gdr", "nvlink", "tcp"),
        help="an error if it is not on: RDMA between nodes, GPUDirect RDMA, NVLink inside a node, "
        "or TCP sockets; may be repeated. With --host alone: if a job here could not use it",
    )
    parser.add_argument(
        "--rules",
        action="append",
        default=[],
        type=Path,
        metavar="FILE.yaml",
        help="rules of your own for lines of logs, beside the known ones",
    )
    parser.add_argument(
        "--busbw",
        metavar="GB/S",
        help="a bus bandwidth of a large all-reduce that you measured, in 10⁹ byte/s as nccl-tests "
        "prints it: is it normal for what the logs tell?",
    )
    parser.add_argument("--gpu", metavar="NAME", help="the GPU, where logs do not name it")
    parser.add_argument(
        "--nic-rate", metavar="RATE", help="of one NIC, where logs do not tell it: '400 Gbit/s'"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.specs.errors import InputError

    if options.run is None and options.log is None and not options.host:
        raise InputError(
            "doctor of what?",
            hint="--log FILE…, --host, or a RUN: `broadgauge doctor --log train.log --host`",
        )
    if options.run is not None and options.log is not None:
        raise InputError(
            f"both a run ({options.run}) and --log", hint="a run brings its own logs: ask twice"
        )
    for flag, value in (
        ("--rules", options.rules),
        ("--busbw", options.busbw),
        ("--gpu", options.gpu),
        ("--nic-rate", options.nic_rate),
    ):
        if value and options.log is None:
            raise InputError(f"{flag} belongs to --log")
    if options.expect and options.run is not None:
        raise InputError(
            "--expect belongs to --log or --host",
            hint="of a run: `transport:` of its network says what is meant, and the contrary fails "
            "the case",
        )
    return _examine(options)


def _examine(options: argparse.Namespace) -> int:
    from broadgauge.doctor.host.findings import host_findings
    from broadgauge.doctor.host.reading import read_hardware

    host = read_hardware() if options.host else None
    of_host = [] if host is None else list(host_findings(host))
    if options.run is not None:
        return _tell_of_run(options, host, of_host)
    return _tell_of_logs(options, host, of_host)


def _tell_of_run(
    options: argparse.Namespace, host: "HardwareFacts | None", of_host: "list[Finding]"
) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.report.doctor_json import examination_document
    from broadgauge.report.terminal_doctor import print_findings
    from broadgauge.report.terminal_doctor_host import print_host
    from broadgauge.report.terminal_examination import print_examination
    from broadgauge.results.run_path import run_path
    from broadgauge.running.doctoring import examine_run

    examination = examine_run(run_path(options.run))
    found = [each.finding for each in examination.findings] + of_host
    if options.json:
        return _print_json(examination_document(examination, of_host, host), _exit_code(found))
    with results_console() as console:
        print_examination(examination, console)
        if host is not None:
            print_host(host, console)
            print_findings(of_host, console)
    return _exit_code(found)


def _tell_of_logs(
    options: argparse.Namespace, host: "HardwareFacts | None", of_host: "list[Finding]"
) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.doctor.answer import Subject, expectation_findings, is_unanswered
    from broadgauge.doctor.log.conclusions.network_choice import RDMA_MISSING
    from broadgauge.doctor.log.findings import is_silent
    from broadgauge.doctor.log.overview import job_overview
    from broadgauge.doctor.log.path_matrix import path_matrix
    from broadgauge.report.doctor_json import doctor_document
    from broadgauge.report.terminal_answers import print_answers
    from broadgauge.report.terminal_doctor import (
        print_expectation,
        print_findings,
        print_job,
        print_matrix,
    )
    from broadgauge.report.terminal_doctor_host import print_host

    known = _known(options)
    reading = None if options.log is None else _read(options.log, options.rules, known[1])
    answers = _answers(reading, host)
    wanted = [Subject(each) for each in options.expect]
    found = list(expectation_findings(answers, wanted))
    job = matrix = expected = None
    if reading is not None:
        expected, of_log = _of_reading(reading, *known)
        found += of_log
        job, matrix = job_overview(reading), path_matrix(reading)
    if Subject.TCP in wanted:
        found = [each for each in found if each.rule != RDMA_MISSING]
    found = sorted([*found, *of_host], key=lambda each: each.severity.rank)
    is_unknown = is_unanswered(answers, wanted)
    code = _exit_code(
        found, is_unanswered=is_unknown, is_silent=reading is not None and is_silent(reading)
    )
    if options.json:
        document = doctor_document(
            found, job=job, matrix=matrix, host=host, expected=expected, answers=answers
        )
        return _print_json(document, code)
    with results_console() as console:
        print_answers(answers, console, wanted, is_machine=reading is None)
        if job is not None:
            print_job(job, console)
        if expected is not None and job is not None and job.num_processes:
            print_expectation(expected, console)
        if matrix is not None:
            print_matrix(matrix, console)
        if host is not None:
            print_host(host, console)
        print_findings(found, console)
    return code


def _answers(
    reading: "LogReading | None", host: "HardwareFacts | None"
) -> "Mapping[Subject, SubjectAnswer]":
    """Of the logs, which tell what was done; without logs, of what this machine could do."""
    from broadgauge.doctor.host.answers import host_answers
    from broadgauge.doctor.log.answers import answers_of

    if reading is not None:
        return answers_of(reading)
    assert host is not None
    return host_answers(host)


def _of_reading(
    reading: "LogReading", busbw: float | None, gpu: str | None, nic_gbps: float | None
) -> "tuple[BandwidthExpectation, list[Finding]]":
    """What the bandwidth should be, and all that is said of the job."""
    from broadgauge.doctor.log.findings import log_findings, silence_findings, unread_findings

    expected, measured = _bandwidth(reading, busbw, gpu, nic_gbps)
    said = (*log_findings(reading), *unread_findings(reading), *silence_findings(reading))
    return expected, [*said, *measured]


def _print_json(document: dict[str, Any], code: int) -> int:
    import json

    from broadgauge.cli.output import write

    write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    return code


def _known(options: argparse.Namespace) -> "tuple[float | None, str | None, float | None]":
    """Busbw, GPU and rate of a NIC, as the user gives them. Raises InputError."""
    import math

    from broadgauge.catalog.gpus import find_gpu_named
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.units import parse_rate_gbps

    busbw = nic_gbps = None
    if options.busbw is not None:
        try:
            busbw = float(options.busbw)
        except ValueError:
            busbw = math.nan
        if not 0 < busbw < 1e6:
            raise InputError(
                f"--busbw: {options.busbw!r} is no bus bandwidth",
                hint="a number of 10⁹ byte/s, as nccl-tests prints it: --busbw 3.4",
            )
    gpu = None if options.gpu is None else find_gpu_named(options.gpu).name
    if options.nic_rate is not None:
        try:
            rate = parse_rate_gbps(options.nic_rate)
        except ValueError as error:
            raise InputError(f"--nic-rate: {error}") from None
        if not isinstance(rate, float | int) or not 0.001 <= rate <= 10_000:
            raise InputError(
                f"--nic-rate: {options.nic_rate!r} is no rate of a NIC",
                hint="--nic-rate '400 Gbit/s'",
            )
        nic_gbps = float(rate)
    return busbw, gpu, nic_gbps


def _bandwidth(
    reading: "LogReading", busbw: float | None, gpu: str | None, nic_gbps: float | None
) -> "tuple[BandwidthExpectation, tuple[Finding, ...]]":
    """What it should be, and what is said of what was measured."""
    from broadgauge.doctor.expectation import expect
    from broadgauge.doctor.measured import measured_findings
    from broadgauge.doctor.situation import situation_of

    return (
        expect(situation_of(reading, gpu=gpu, nic_gbps=nic_gbps)),
        measured_findings(reading, measured_gbyte_per_s=busbw, gpu=gpu, nic_gbps=nic_gbps),
    )


def _read(paths: list[str], rule_files: list[Path], gpu: str | None) -> "LogReading":
    """`gpu`: of the catalog, where the user names it."""
    from broadgauge.doctor.log.files import open_sources
    from broadgauge.doctor.log.loading import read_rules, shipped_rules
    from broadgauge.doctor.log.reading import read_logs

    own = [rule for path in rule_files for rule in read_rules(path)]
    reading = read_logs(open_sources(paths), (*own, *shipped_rules()))
    if gpu is not None:
        reading.gpu_names.add(gpu)
    return reading


def _exit_code(
    findings: "list[Finding]", *, is_unanswered: bool = False, is_silent: bool = False
) -> int:
    """An error is one whatever else is unknown; what was expected and is unknown must not pass as
    a warning does."""
    from broadgauge.specs.errors import ExitCode
    from broadgauge.specs.record import Severity

    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return ExitCode.DOCTOR_ERRORS
    if is_unanswered:
        return ExitCode.DOCTOR_UNKNOWN
    if Severity.WARNING in severities:
        return ExitCode.DOCTOR_WARNINGS
    return ExitCode.DOCTOR_UNKNOWN if is_silent else ExitCode.OK
