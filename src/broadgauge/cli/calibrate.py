"""`broadgauge calibrate`: what can this machine do, measured for predictions?"""

import argparse
from pathlib import Path
from typing import Any


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
        help="measure nothing: predict this run's trainings from the system file, and compare",
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

    from broadgauge.cli.console import PlainConsole, results_console
    from broadgauge.cli.output import say, write_file
    from broadgauge.cli.progress import PlainLines
    from broadgauge.engine.interrupts import Interrupts, signals_to
    from broadgauge.platforms.machine import read_machine
    from broadgauge.predict.system.file import dump_system
    from broadgauge.report.lines.opening import machine_lines
    from broadgauge.report.predict.system import print_system
    from broadgauge.running.calibration.checks import check_replaceable, device_asked
    from broadgauge.running.calibration.measuring import CalibrationObserver, calibrate
    from broadgauge.specs.errors import InputError

    if options.check is not None:
        return _check(options)
    if options.json:
        raise InputError("--json belongs to --check", hint="the system file is plain data itself")
    machine = read_machine()
    device = device_asked(options.device, machine)
    check_replaceable(options.output, machine)
    for line in machine_lines(machine):
        say(line)
    began_unix_s = time.time()
    interrupts = Interrupts()
    telling = CalibrationObserver(
        device=lambda what: say(f"measuring  {what}"),
        run=PlainLines(PlainConsole(stderr=True)),
        interrupts=interrupts,
    )
    with signals_to(interrupts):
        system = calibrate(machine, device, runs_folder=options.runs_folder, telling=telling)
    write_file(options.output, dump_system(system))
    with results_console() as console:
        print_system(system, console)
    say(f"wrote      {options.output} in {time.time() - began_unix_s:.0f} s")
    return 0


def _check(options: argparse.Namespace) -> int:
    import json

    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import say_sentence, write
    from broadgauge.predict.runs.check import check_run, unknown_here_words
    from broadgauge.predict.system.file import read_system
    from broadgauge.report.predict.system_check import check_document, print_check
    from broadgauge.results.run_path import read_summary, run_path

    run = read_summary(run_path(options.check, options.runs_folder))
    steps = check_run(read_system(options.output), run)
    for words in unknown_here_words(run):
        say_sentence(f"note: left out: {words}")
    if options.json:
        document = check_document(steps)
        write(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
        return 0
    with results_console() as console:
        print_check(steps, console)
    return 0
