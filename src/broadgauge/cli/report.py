"""`broadgauge report`: the HTML report of a stored run, made again."""

import argparse
from pathlib import Path
from typing import Any

from broadgauge.cli.collector import no_collections
from broadgauge.cli.cost_flags import add_measured_flags, read_cost
from broadgauge.results.run_path import RUN_HELP


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "report",
        help="write the HTML report of a run",
        description="Writes one HTML file that opens offline. Into the run folder unless --output "
        "names a file.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--output", type=Path, metavar="FILE")
    add_measured_flags(parser)
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.analysis.store import read_analysed
    from broadgauge.cli.output import say, write_file
    from broadgauge.report.page.html import render, write_report
    from broadgauge.results.run_path import run_path

    analysed = read_analysed(run_path(options.run), read_cost(options))
    if options.output is None:
        path = write_report(analysed)
    else:
        path = options.output
        write_file(path, render(analysed))
    say(f"report     {path}")
    return 0
