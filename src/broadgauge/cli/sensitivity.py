"""`broadgauge sensitivity`: how much of a step does the network's rate decide?"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.experiment_flags import add_on_flag, add_set_flag, overrides

if TYPE_CHECKING:
    from broadgauge.advise.ladders.ladder import Ladder
    from broadgauge.results.model import RunSummary
    from broadgauge.specs.experiment import Experiment

RATES_HELP = "line rates in Gbit/s: 0.1,0.2,0.5,1 (default: six about those that it names)"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "sensitivity",
        help="run an experiment at several link rates, and say what the rate decides",
        description="Runs an experiment's trainings and commands at several link rates, or on "
        "hosts and in pods on the networks that are there. From step time against 1/bandwidth "
        "come the bytes on the critical path, the time that no network can remove, and the rate "
        "beyond which nothing is gained. A run folder with three rates or more is analysed as it "
        "is.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        help="an experiment file, the name of an example, or a run folder (`last`)",
    )
    parser.add_argument("--rates", metavar="LIST", help=RATES_HELP)
    parser.add_argument(
        "--network",
        metavar="NAME",
        help="whose MTU, overlay, NICs and delay the rungs have (default: the first with a rate)",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="of a command: what tells the time of a step (default: step_time_s, else the first "
        "time, else the inverse of the first rate)",
    )
    parser.add_argument(
        "--within",
        metavar="PERCENT",
        default="2%",
        help="how near to a network without limit is near enough (default: 2%%)",
    )
    parser.add_argument(
        "--system",
        type=Path,
        metavar="FILE",
        help="of `calibrate` on this machine: what the predictor rests on, beside the measurement",
    )
    add_set_flag(parser, "--set launches=3")
    add_on_flag(parser, ("emulated", "hosts", "kubernetes"))
    parser.add_argument("--dry-run", action="store_true", help="print the schedule; run nothing")
    parser.add_argument(
        "--runs-folder",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where the run's folder is made (default: runs)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.predict.system.file import read_system
    from broadgauge.results.run_path import is_relative_to_last, run_path

    _within_ratio(options.within)
    if options.system is not None:
        read_system(options.system)  # before anything is measured
    is_run = Path(options.experiment).is_dir() or is_relative_to_last(options.experiment)
    if not is_run:
        return _run_ladder(options)
    _refuse_for_a_run(options)
    _show(run_path(options.experiment, options.runs_folder), options)
    return 0


def _refuse_for_a_run(options: argparse.Namespace) -> None:
    from broadgauge.specs.errors import InputError

    given = {"rates": options.rates, "network": options.network, "set": options.overrides}
    for name, value in (given | {"on": options.on, "dry-run": options.dry_run}).items():
        if value:
            raise InputError(
                f"--{name} changes what is run, and {options.experiment} has been run",
                hint="name the experiment instead of the run",
            )


def _run_ladder(options: argparse.Namespace) -> int:
    """Measure, then show. Returns the run's exit code."""
    from contextlib import nullcontext, redirect_stdout

    from broadgauge.cli.output import program, say
    from broadgauge.cli.start_and_show import RunRequest, print_dry_run, run_new, show_finished
    from broadgauge.running.ladder import parse_rates_gbps
    from broadgauge.running.preparing import RunOptions
    from broadgauge.specs.errors import ExitCode, InputError

    rates = () if options.rates is None else parse_rates_gbps(options.rates)
    request = RunRequest(
        name_or_path=options.experiment,
        overrides=overrides(options),
        change=partial(_that_can_run, rates_gbps=rates, network_name=options.network),
        options=RunOptions(runs_folder=options.runs_folder),
    )
    if options.dry_run:
        return print_dry_run(request)
    with redirect_stdout(_stderr()) if options.json else nullcontext():
        finished = run_new(request)
        code = show_finished(finished)
    if code > ExitCode.TRIALS_FAILED:
        say(f"then: {program()} sensitivity {finished.folder}")
        return code
    try:
        _show(finished.folder, options)
    except InputError as error:
        if code == ExitCode.OK:
            raise
        say(f"broadgauge: {error}")  # no curve, since trials failed: the code says that
    return code


def _that_can_run(
    experiment: "Experiment", rates_gbps: tuple[float, ...], network_name: str | None
) -> "Experiment":
    """The ladder of it. Raises InputError, and PlatformError where it can't run here."""
    from broadgauge.platforms.machine import read_machine
    from broadgauge.running.ladder import as_ladder, check_nodes

    ladder = as_ladder(experiment, rates_gbps, network_name)
    check_nodes(ladder, read_machine())
    return ladder


def _stderr() -> Any:
    import sys

    return sys.stderr


def _show(folder: Path, options: argparse.Namespace) -> None:
    """Raises InputError where there is no curve, after what there is."""
    from broadgauge.advise.ladders.ladders_of_run import ladders
    from broadgauge.advise.ladders.predictions import predicted_steps
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import say_sentence, write
    from broadgauge.predict.runs.check import unknown_here_words
    from broadgauge.predict.system.file import read_system
    from broadgauge.report.predict.sensitivity import print_ladders
    from broadgauge.results.run_path import read_summary
    from broadgauge.specs.errors import InputError

    system = None if options.system is None else read_system(options.system)
    run = read_summary(folder)
    for words in () if system is None else unknown_here_words(run):
        say_sentence(f"note: not predicted: {words}")
    found = ladders(
        run,
        metric=options.metric,
        gain_ratio=_within_ratio(options.within),
        predicted=predicted_steps(run, system),
    )
    if options.json:
        write(_json(run, found))
    else:
        with results_console() as console:
            print_ladders(found, console)
    if not any(ladder.found for ladder in found):
        reasons = "; ".join(dict.fromkeys(ladder.why for ladder in found))
        raise InputError(
            f"no curve can be drawn of {folder}: {reasons}",
            hint=_HINT_FOUND if any(ladder.rates_words for ladder in found) else _HINT,
        )


_HINT = (
    "`broadgauge sensitivity EXPERIMENT` measures a job at several rates, and --rates says at which"
)
_HINT_FOUND = (
    "three networks with an all_reduce of 16 MiB or more beside the job: `broadgauge sensitivity "
    "EXPERIMENT` adds one, or `--on emulated` sets rates"
)


def _within_ratio(text: str) -> float:
    """`2%` or `0.02` → 0.02. Raises InputError."""
    from broadgauge.specs.errors import InputError

    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0.001 <= value <= 1:
        raise InputError(f"--within: `{text}` is no share from 0.1% to 100%", hint="--within 2%")
    return value


def _json(run: "RunSummary", found: "Sequence[Ladder]") -> str:
    import json

    from broadgauge.report.predict.ladder_json import ladder_json

    document = {
        "format": "broadgauge sensitivity",
        "run": str(run.folder),
        "ladders": [ladder_json(ladder) for ladder in found],
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
