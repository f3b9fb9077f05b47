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
        description="Prints a stored run: what holds it back, the table, failures and the worst "
        "findings, as `run` does at its end.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument(
        "--details",
        action="store_true",
        help="print everything: every figure, evidence, failures with their last lines, findings, "
        "the environment",
    )
    parts.add_argument(
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
    from broadgauge.cli.output import details_command, write
    from broadgauge.report.terminal.printing import print_run, print_run_briefly, print_title
    from broadgauge.results.run_path import run_path

    analysed = read_analysed(run_path(options.run), read_cost(options))
    if options.json:
        write(analysis_json(analysed.analysis))
        return 0
    with results_console() as console:
        if options.details:
            print_run(analysed, console)
        else:
            print_title(analysed.run, console)
            print_run_briefly(analysed, console, details_command(options.run))
    return 0
