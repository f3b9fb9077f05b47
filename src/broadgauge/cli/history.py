"""`broadgauge history`: how did one experiment's figures go over its runs?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.collector import no_collections

if TYPE_CHECKING:
    from broadgauge.results.history import FoundRun, History, Point


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "history",
        help="show one experiment over its runs",
        description="Shows each case's headline figure over the runs of one experiment, oldest "
        "first, with the change from the run before. Without a name: which experiments have runs.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="an experiment's `name`")
    parser.add_argument(
        "--runs-folder",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where the runs' folders are (default: runs)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.report.terminal.history import print_experiments, print_history
    from broadgauge.results.history import find_runs, history
    from broadgauge.specs.base import did_you_mean
    from broadgauge.specs.errors import InputError, RunFolderError

    if not options.runs_folder.is_dir():
        raise RunFolderError(
            f"there is no folder {options.runs_folder}",
            hint="begin with: broadgauge run quickstart, or name another with --runs-folder",
        )
    runs, notes = find_runs(options.runs_folder)
    if options.name is None:
        if options.json:
            write(_names_json(runs, notes))
            return 0
        with results_console() as console:
            print_experiments(runs, notes, console)
        return 0
    names = {run.experiment_name for run in runs}
    if options.name not in names:
        raise InputError(
            f"no run in {options.runs_folder} is of an experiment named `{options.name}`",
            hint=did_you_mean(options.name, names),
        )
    found = history(options.name, runs)
    found = replace(found, notes=(*notes, *found.notes))
    if options.json:
        write(_history_json(found))
        return 0
    with results_console() as console:
        print_history(found, console)
    return 0


def _names_json(runs: "tuple[FoundRun, ...]", notes: tuple[str, ...]) -> str:
    import json

    experiments: dict[str, list[str]] = {}
    for run in runs:
        experiments.setdefault(run.experiment_name, []).append(str(run.folder))
    document = {"format": "broadgauge runs", "experiments": experiments, "notes": list(notes)}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _history_json(found: "History") -> str:
    import json

    document = {
        "format": "broadgauge history",
        "experiment": found.experiment_name,
        "num_runs": found.num_runs,
        "cases": [
            {
                "label": case.label,
                "metric": case.metric,
                "direction": case.direction,
                "points": [_point(point) for point in case.points],
            }
            for case in found.cases
        ],
        "notes": list(found.notes),
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _point(point: "Point") -> dict[str, object]:
    from dataclasses import asdict

    change = None
    if point.change is not None and point.change.comparison is not None:
        change = {"ratio": asdict(point.change.comparison.ratio), "is_interleaved": False}
    return {
        "run": point.run,
        "started_unix_s": point.started_unix_s,
        "case_key": point.case_key,
        "git_commit": point.git_commit,
        "broadgauge": point.broadgauge,
        "torch": point.torch,
        "figure": asdict(point.figure),
        "is_same_case": point.is_same_case,
        "change": change,
    }
