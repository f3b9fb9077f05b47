"""`broadgauge show`: what did a run measure?"""

import argparse
from typing import Any

from broadgauge.cli.collector import no_collections
from broadgauge.cli.cost_flags import add_measured_flags, read_cost
from broadgauge.results.run_path import RUN_HELP


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "show",
        help="print what a run measured",
        description="Prints a stored run: the table, every case, its failures, the environment.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the run's analysis (its analysis.json): verdicts, findings, comparisons, "
        "hypotheses",
    )
    add_measured_flags(parser)
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.analysis.store import analysis_json, read_analysed
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.report.terminal import print_run
    from broadgauge.results.run_path import run_path

    analysed = read_analysed(run_path(options.run), read_cost(options))
    if options.json:
        write(analysis_json(analysed.analysis))
        return 0
    with results_console() as console:
        print_run(analysed, console)
    return 0
