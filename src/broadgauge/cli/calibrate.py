"""`broadgauge calibrate`: what can this machine do, measured for predictions?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.cli.calibrating import MeasuredDevice
    from broadgauge.specs.case import Device
    from broadgauge.specs.machine import MachineFacts


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "calibrate",
        help="measure this machine for predictions",
        description="Measures this machine in about a minute: matrix products, attention, a copy, "
        "launches and training steps of one rank, then collectives on each path. The system file "
        "it writes is what `predict --system` and `whatif --system` take.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("system.yaml"),
        metavar="FILE",
        help="the system file (default: system.yaml); an older one of this machine is replaced",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="what computes (default: GPUs where there are any)",
    )
    parser.add_argument(
        "--check",
        metavar="RUN",
        help="measure nothing: foretell this run's trainings from the system file, and compare",
    )
    parser.add_argument(
        "--runs-folder",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where the collectives' run is kept (default: runs)",
    )
    parser.add_argument(
        "--json", action="store_true", help="with --check: print one JSON object instead"
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    import time

    from broadgauge.cli.calibrating import measure_device, measure_paths
    from broadgauge.cli.calibration_run import calibration_experiment, paths_of, trained_of
    from broadgauge.cli.console import results_console
    from broadgauge.cli.opening import machine_lines
    from broadgauge.cli.output import say, write_file
    from broadgauge.platforms.machine import read_machine
    from broadgauge.predict.system.file import dump_system
    from broadgauge.report.terminal_system import print_system
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.system import PathTimes, System, TrainedStep

    if options.check is not None:
        return _check(options)
    if options.json:
        raise InputError("--json belongs to --check", hint="the system file is plain data itself")
    machine = read_machine()
    device = _device(options.device, machine)
    _check_replaceable(options.output, machine)
    for line in machine_lines(machine):
        say(line)
    began_unix_s = time.time()
    measured = measure_device(machine, device)
    notes = list(measured.notes)
    paths: tuple[PathTimes, ...] = ()
    trained: tuple[TrainedStep, ...] = ()
    nccl = None
    experiment = calibration_experiment(machine, device)
    if experiment is None:
        notes.append("one rank has no path to another: collectives were not measured")
    else:
        summary, failures = measure_paths(experiment, machine, options.runs_folder)
        notes += failures
        paths, trained = paths_of(summary), trained_of(summary)
        nccl = next((each.nccl for each in summary.environments.values()), None)
    system = System(
        format="broadgauge system",
        version=1,
        measured_unix_s=round(began_unix_s, 0),
        **_facts(machine, device, measured, nccl),
        compute=measured.compute,
        paths=paths,
        trained=trained,
        notes=tuple(notes),
    )
    write_file(options.output, dump_system(system))
    with results_console() as console:
        print_system(system, console)
    say(f"wrote      {options.output} in {time.time() - began_unix_s:.0f} s")
    return 0


def _check(options: argparse.Namespace) -> int:
    import json

    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.cli.runs import read_summary, run_path
    from broadgauge.predict.runs.check import check_run
    from broadgauge.predict.system.file import read_system
    from broadgauge.report.terminal_system_check import check_document, print_check

    run = read_summary(run_path(options.check, options.runs_folder))
    steps = check_run(read_system(options.output), run)
    if options.json:
        document = check_document(steps)
        write(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
        return 0
    with results_console() as console:
        print_check(steps, console)
    return 0


def _device(wanted: str, machine: "MachineFacts") -> "Device":
    """Raises InputError."""
    from broadgauge.specs.errors import InputError

    if machine.torch is None:
        raise InputError(
            "measuring needs torch, which is not installed here",
            hint="pip install 'broadgauge[torch]'",
        )
    if wanted == "cuda" and not machine.gpus:
        raise InputError("--device cuda: no GPU was found here", hint="--device cpu")
    return "cuda" if wanted != "cpu" and machine.gpus else "cpu"


def _check_replaceable(path: Path, machine: "MachineFacts") -> None:
    """Anything but an older file of this machine is kept. Raises InputError, before measuring."""
    from broadgauge.predict.system.file import read_system
    from broadgauge.specs.errors import InputError

    if not path.exists():
        if not path.parent.is_dir():
            raise InputError(f"--output: there is no folder {path.parent}")
        return
    hint = "name another file with --output"
    try:
        older = read_system(path)
    except InputError:
        raise InputError(f"`{path}` is there, is no system file, and is kept", hint=hint) from None
    if older.machine.hostname != machine.hostname:
        whose = f"`{path}` is of the machine {older.machine.hostname}, and is kept"
        raise InputError(whose, hint=hint)


def _facts(
    machine: "MachineFacts", device: "Device", measured: "MeasuredDevice", nccl: str | None
) -> dict[str, Any]:
    """The parts of the file that say what was measured."""
    from broadgauge.platforms.host_facts import make_environment
    from broadgauge.specs.system import DeviceOfSystem, MachineOfSystem

    hello = {**measured.software, "nccl": nccl}
    found = make_environment("", hello, gpus=(), variables={}, working_folder=Path.cwd())
    gpus = machine.gpus if device == "cuda" else ()
    return {
        "broadgauge": found.broadgauge,
        "machine": MachineOfSystem(
            hostname=machine.hostname,
            cpu=found.cpu,
            cores=len(machine.cores),
            memory_bytes=machine.memory_bytes,
            kernel=found.kernel,
            python=found.python,
            torch=found.torch or machine.torch or "unknown",
            nccl=found.nccl,
            cuda=found.cuda,
            driver=found.driver,
        ),
        "device": DeviceOfSystem(
            kind=device,
            name=gpus[0].name if gpus else found.cpu or "cpu",
            count=len(gpus) or measured.ranks,
            memory_bytes=gpus[0].memory_bytes if gpus else machine.memory_bytes,
            threads=measured.threads,
        ),
    }
