"""`broadgauge logs`: what did the ranks of a run write?"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from broadgauge.results.run_path import RUN_HELP

if TYPE_CHECKING:
    from pathlib import Path

    from broadgauge.results.folder.logs import Line, RankLog
    from broadgauge.specs.plan import Plan

LOOK_AGAIN_S = 0.2


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "logs",
        help="print what the ranks wrote",
        description="Prints the logs of the newest launch, each line behind its launch and rank; "
        "of one rank, as it is. With -f until the run ends, across launches.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--rank", type=int, metavar="N", help="of this rank only")
    parser.add_argument("--launch", metavar="ID", help="of this launch, such as `b0.l1`")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import say
    from broadgauge.results.folder.lock import is_being_written
    from broadgauge.results.folder.logs import find_logs, follow
    from broadgauge.results.folder.reading import find_run, read_plan
    from broadgauge.results.run_path import run_path

    folder = find_run(run_path(options.run))
    plan, _ = read_plan(folder)
    is_live = options.follow and is_being_written(folder)
    logs = find_logs(folder, plan)
    if not is_live:
        _say_why_nothing_comes(folder, say, is_asked=options.follow)
    if not is_live or options.launch is not None:
        _check(folder, plan, logs, options)
    first = _first_place(logs, options.launch)

    def chosen() -> Sequence["RankLog"]:
        return [
            log
            for log in find_logs(folder, plan)
            if log.place >= first
            and options.rank in (None, log.rank)
            and options.launch in (None, log.launch_id)
        ]

    lines = follow(chosen, lambda: is_live and is_being_written(folder), _wait)
    _print(lines, plan, say, has_prefix=options.rank is None)
    return 0


def _say_why_nothing_comes(folder: "Path", say: Callable[[str], None], *, is_asked: bool) -> None:
    """What goes on elsewhere writes there: its logs come with its records, to whoever collects.
    `is_asked`: more was to be followed."""
    from broadgauge.results.run_list import RunStatus, look_at

    run = look_at(folder)
    if run.status is RunStatus.DETACHED:
        say(f"note       {run.elsewhere}, and its logs come with its records")
    elif run.status is RunStatus.UNFINISHED and is_asked:
        say(
            "note       the run is not done, and nothing is written here now: "
            f"`broadgauge run --resume {folder}` goes on with it, and can be followed"
        )


def _wait() -> None:
    """What was written is to be seen meanwhile."""
    from broadgauge.cli.output import telling

    with telling("stdout"):
        sys.stdout.flush()
    time.sleep(LOOK_AGAIN_S)


def _first_place(logs: "Sequence[RankLog]", launch_id: str | None) -> tuple[int, int]:
    """From the launch that was named, else the newest that there is."""
    named = [log.place for log in logs if launch_id in (None, log.launch_id)]
    return max(named, default=(0, 0))


def _check(
    folder: "Path", plan: "Plan", logs: "Sequence[RankLog]", options: argparse.Namespace
) -> None:
    """Is there anything to print? Raises InputError."""
    from broadgauge.results.folder.logs import by_launch
    from broadgauge.specs.base import did_you_mean
    from broadgauge.specs.errors import InputError

    if not logs:
        raise InputError(
            f"{folder} has no logs",
            hint="no launch has begun, or none was collected, or they were removed",
        )
    launches = by_launch(logs)
    if options.launch is not None and options.launch not in launches:
        planned = {launch.launch_id for launch in plan.launches}
        known = f"launch `{options.launch}` has no logs"
        message = known if options.launch in planned else f"there is no launch `{options.launch}`"
        raise InputError(message, hint=did_you_mean(options.launch, launches))
    launch = options.launch or logs[-1].launch_id
    ranks = [log.rank for log in launches[launch]]
    if options.rank is not None and options.rank not in ranks:
        raise InputError(
            f"launch {launch} has no log of rank {options.rank}",
            hint=f"ranks with a log: {', '.join(map(str, ranks))}",
        )


def _print(
    lines: "Iterable[Line]", plan: "Plan", say: Callable[[str], None], *, has_prefix: bool
) -> None:
    """Each line to stdout; the launch that it is of, once, to stderr."""
    from broadgauge.cli.output import telling
    from broadgauge.results.folder.logs import harmless

    is_terminal = sys.stdout.isatty()
    cases = {launch.launch_id: launch.trials[0].case_key for launch in plan.launches}
    seen = ""
    for line in lines:
        launch_id = line.log.launch_id
        if launch_id != seen:
            seen = launch_id
            case = plan.case(cases[launch_id.partition("r")[0]])
            say(f"launch     {launch_id}: {case.label}")
        prefix = f"{launch_id}.rank{line.log.rank} | " if has_prefix else ""
        with telling("stdout"):
            sys.stdout.write(f"{prefix}{harmless(line.text) if is_terminal else line.text}\n")
    with telling("stdout"):
        sys.stdout.flush()
