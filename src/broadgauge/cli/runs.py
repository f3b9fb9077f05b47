"""`broadgauge runs`: which runs are there? And removes some, when asked to."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.results.run_list import ListedRun


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "runs",
        help="list the runs, or remove some",
        description="Lists the runs of a folder, newest first, with status, trials, size and age. "
        "With --remove: removes these, for ever, after asking.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--runs-folder",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where the runs' folders are (default: runs)",
    )
    parser.add_argument(
        "--remove",
        nargs="+",
        metavar="RUN",
        help="a run folder, `last`, `last~1`, or how its name begins",
    )
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.specs.errors import InputError

    if options.remove is not None:
        if options.json:
            raise InputError("--json is for the list, not for --remove")
        return _remove(options)
    if options.yes:
        raise InputError("--yes is for --remove", hint="broadgauge runs --remove RUN --yes")
    return _list(options)


def _list(options: argparse.Namespace) -> int:
    import time

    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.report.terminal.run_list import print_run_list
    from broadgauge.results.run_list import list_runs
    from broadgauge.specs.errors import RunFolderError

    if not options.runs_folder.is_dir():
        raise RunFolderError(
            f"there is no folder {options.runs_folder}",
            hint="begin with: broadgauge run quickstart, or name another with --runs-folder",
        )
    runs = list_runs(options.runs_folder)
    if options.json:
        write(_as_json(runs))
        return 0
    with results_console() as console:
        print_run_list(runs, time.time(), console)
    return 0


def _remove(options: argparse.Namespace) -> int:
    """All are found before one is removed: a mistyped name or a link removes nothing."""
    from broadgauge.cli.output import say
    from broadgauge.results.folder.reading import find_run
    from broadgauge.results.run_list import check_no_link, look_at, remove_run
    from broadgauge.results.run_path import run_path
    from broadgauge.specs.errors import InputError
    from broadgauge.wording.amounts import show_size

    meant = [run_path(text, options.runs_folder) for text in options.remove]
    for path in meant:
        check_no_link(path)
    found = [find_run(path) for path in meant]
    runs = [look_at(folder) for folder in dict.fromkeys(found)]
    for run in runs:
        trials = f"{run.status}, {run.num_stored} trials, {show_size(float(run.size_bytes))}"
        say(f"remove     {run.folder}: {trials}")
    if not options.yes:
        if not sys.stdin.isatty():
            raise InputError(
                "nothing was removed: there is no terminal to ask on", hint="add --yes"
            )
        if not _is_agreed(len(runs)):
            say("nothing was removed")
            return 0
    for run in runs:
        remove_run(run.folder)
    say(f"removed    {len(runs)} {'run' if len(runs) == 1 else 'runs'}")
    return 0


def _is_agreed(num_runs: int) -> bool:
    question = (
        f"Remove {'this run' if num_runs == 1 else f'these {num_runs} runs'} for ever? [y/N] "
    )
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _as_json(runs: "Sequence[ListedRun]") -> str:
    import json

    document = {
        "format": "broadgauge run list",
        "runs": [
            {
                "run": str(run.folder),
                "experiment": run.experiment_name,
                "status": run.status,
                "num_planned": run.num_planned,
                "num_stored": run.num_stored,
                "num_ok": run.num_ok,
                "num_failed": run.num_failed,
                "size_bytes": run.size_bytes,
                "started_unix_s": run.started_unix_s,
                "problem": run.problem,
                "elsewhere": run.elsewhere,
            }
            for run in runs
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
