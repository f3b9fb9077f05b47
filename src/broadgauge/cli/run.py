"""`broadgauge run`: one experiment, from its file to its report."""

import argparse
from pathlib import Path
from typing import Any

from broadgauge.cli.experiment_flags import add_on_flag, add_set_flag, overrides


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run an experiment and report",
        description="Runs an experiment: shows what was found and what will be done, runs every "
        "case, and ends with a table and an HTML report. A run that was ended goes on with "
        "--resume.",
        allow_abbrev=False,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        nargs="?",
        help="an experiment file, or the name of an example such as `quickstart`",
    )
    what.add_argument(
        "--resume", metavar="RUN", help="go on with this run folder, or with the `last` one"
    )
    _add_what_is_run(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the schedule and each rank's environment and command; run nothing",
    )
    parser.add_argument(
        "--assume-gpus",
        type=int,
        metavar="COUNT",
        help="with --dry-run: plan as if this machine had so many GPUs",
    )
    parser.add_argument(
        "--runs-folder",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where the run's folder is made (default: runs)",
    )
    parser.set_defaults(handler=handle)


def _add_what_is_run(parser: argparse.ArgumentParser) -> None:
    """Flags that change what a new run measures."""
    add_set_flag(parser, "--set launches=3 --set workloads.train.steps=20")
    add_on_flag(parser)
    parser.add_argument(
        "--detach",
        action="store_true",
        help="on other machines: come back when its first trial has begun; `run --resume` "
        "collects it",
    )
    parser.add_argument(
        "--engine",
        choices=("torch", "nccl-tests"),
        help="run every collectives workload with torch and with this engine beside it",
    )
    parser.add_argument(
        "--against",
        metavar="RUN",
        help="repeat this run's cases (a run folder, `last`, `last~1`) beside the experiment's, in "
        "the same blocks, and compare",
    )
    parser.add_argument(
        "--fail-above",
        metavar="PERCENT",
        help="with --against: end with exit code 6 where a case is slower than its baseline by "
        "more than this (`3%%`), and with 7 where the launches can't tell",
    )
    parser.add_argument(
        "--add-reference",
        action="store_true",
        help="run commands also on an unshaped copy of the fastest network: what they take with no "
        "network in their way",
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="run every launch also of cases that crash or hang alike; else the rest of such a "
        "case is skipped",
    )


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.start_and_show import (
        RunRequest,
        begin_and_leave,
        print_dry_run,
        run_new,
        run_on,
        show_finished,
    )
    from broadgauge.running.preparing import RunOptions
    from broadgauge.running.reference import with_reference
    from broadgauge.specs.errors import InputError

    if options.resume is not None:
        of_a_new_run = (
            *("overrides", "on", "detach", "engine", "against", "fail_above"),
            *("add_reference", "keep_going", "dry_run", "assume_gpus"),
        )
        if any(getattr(options, name) for name in of_a_new_run):
            raise InputError(
                "--resume goes on with the plan that is stored",
                hint="--set, --on, --detach, --engine, --against, --fail-above, --add-reference, "
                "--keep-going, --dry-run and --assume-gpus belong to a new run",
            )
        return show_finished(run_on(options.resume, options.runs_folder))
    if options.fail_above is not None and options.against is None:
        raise InputError(
            "--fail-above needs a baseline", hint="--against RUN: a run folder, or `last`"
        )
    if options.assume_gpus is not None and (not options.dry_run or options.assume_gpus < 0):
        raise InputError(
            "--assume-gpus plans for GPUs that are not here, and runs nothing",
            hint="run EXPERIMENT --dry-run --assume-gpus 8",
        )
    request = RunRequest(
        name_or_path=options.experiment,
        overrides=overrides(options),
        engine=options.engine,
        change=with_reference if options.add_reference else None,
        options=RunOptions(
            runs_folder=options.runs_folder,
            against=options.against,
            keep_going=options.keep_going,
            fail_above_ratio=_limit_ratio(options.fail_above),
            assumed_gpus=options.assume_gpus,
        ),
    )
    if options.dry_run:
        return print_dry_run(request, may_assume_gpus=True)
    if options.detach:
        return begin_and_leave(request)
    return show_finished(run_new(request))


def _limit_ratio(text: str | None) -> float | None:
    if text is None:
        return None
    from broadgauge.results.comparing.gate import parse_limit

    return parse_limit(text)
