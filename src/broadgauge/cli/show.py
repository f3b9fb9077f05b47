"""`broadgauge show`: what did a run measure?"""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "show",
        help="print what a run measured",
        description="Prints a stored run: the table, every case, its failures, the environment.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help="a run folder, or `last`")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.report.terminal import print_run
    from broadgauge.results.run_path import read_summary, run_path

    run = read_summary(run_path(options.run))
    with results_console() as console:
        print_run(run, console)
    return 0
