"""`broadgauge doctor`: is RDMA really on, and why is this job slow or stuck?"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.collector import no_collections
from broadgauge.results.run_path import RUN_HELP, is_run_folder

if TYPE_CHECKING:
    from broadgauge.messages.hardware import HardwareFacts


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
    parser.add_argument(
        "named",
        metavar="RUN|FILE",
        nargs="*",
        help=f"{RUN_HELP}: its logs and counters; or log files, as with --log",
    )
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

    options.run, logs = _run_and_logs(options.named)
    options.log = [*(options.log or ()), *logs] or None
    if options.run is None and options.log is None and not options.host:
        raise InputError(
            "doctor of what?",
            hint="log files, --host, or a RUN: `broadgauge doctor --log train.log --host`",
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
    return _diagnose(options)


def _run_and_logs(named: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """A name is a run where no file or folder that could hold logs bears it; of several all are
    logs."""
    if len(named) > 1 or any(map(_is_log, named)):
        return None, named
    return (named[0] if named else None), ()


def _is_log(name: str) -> bool:
    """A file, a pipe, a folder that holds no run, stdin, or what is called like a log and is not
    there."""
    from broadgauge.doctor.log.files import STDIN, is_called_like_log

    path = Path(name)
    try:
        if name in ("", STDIN) or not path.exists():
            return name == STDIN or is_called_like_log(path)
        return not path.is_dir() or not any(map(is_run_folder, (path, *path.iterdir())))
    except (OSError, ValueError):
        return False


def _diagnose(options: argparse.Namespace) -> int:
    from broadgauge.doctor.host.reading import read_hardware

    host = read_hardware() if options.host else None
    return _tell_of_logs(options, host) if options.run is None else _tell_of_run(options, host)


def _tell_of_run(options: argparse.Namespace, host: "HardwareFacts | None") -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.doctor.diagnosis import exit_code_of
    from broadgauge.doctor.host.findings import host_findings
    from broadgauge.report.doctor.as_json import run_diagnosis_document
    from broadgauge.report.doctor.host import print_host
    from broadgauge.report.doctor.run_diagnosis import print_run_diagnosis
    from broadgauge.report.doctor.terminal import print_findings
    from broadgauge.results.run_path import run_path
    from broadgauge.running.diagnosing import diagnose_run

    of_host = () if host is None else host_findings(host)
    diagnosis = diagnose_run(run_path(options.run))
    code = exit_code_of([*(each.finding for each in diagnosis.findings), *of_host])
    if options.json:
        return _print_json(run_diagnosis_document(diagnosis, of_host, host), code)
    with results_console() as console:
        print_run_diagnosis(diagnosis, console)
        if host is not None:
            print_host(host, console)
            print_findings(of_host, console)
    return code


def _tell_of_logs(options: argparse.Namespace, host: "HardwareFacts | None") -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.doctor.answer import Subject
    from broadgauge.doctor.diagnosis import diagnose, known_of, read_job
    from broadgauge.report.doctor.as_json import doctor_document
    from broadgauge.report.doctor.diagnosis import print_diagnosis

    known = known_of(
        busbw=options.busbw, gpu=options.gpu, nic_rate=options.nic_rate, named="--{}".format
    )
    reading = None
    if options.log is not None:
        reading = read_job(options.log, rule_files=options.rules, known=known)
    wanted = [Subject(each) for each in options.expect]
    diagnosis = diagnose(reading=reading, host=host, wanted=wanted, known=known)
    if options.json:
        return _print_json(doctor_document(diagnosis), diagnosis.exit_code)
    with results_console() as console:
        print_diagnosis(diagnosis, console)
    return diagnosis.exit_code


def _print_json(document: dict[str, Any], code: int) -> int:
    import json

    from broadgauge.cli.output import write

    write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    return code
