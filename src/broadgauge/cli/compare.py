"""`broadgauge compare`: is one run, or one network of a run, different from another?"""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="compare two runs, or the networks of one",
        description="With one run: its networks against the fastest, paired block by block. With "
        "two: each case that both have. Ratios with 95 % intervals over launches.",
        allow_abbrev=False,
    )
    parser.add_argument("a", metavar="A", help="a run folder, or `last`")
    parser.add_argument("b", metavar="B", nargs="?", help="another, compared with A")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.cli.runs import read_summary, run_path
    from broadgauge.report.terminal import print_networks_compared, print_runs_compared
    from broadgauge.results.compare import against_reference, compare_runs

    a = read_summary(run_path(options.a))
    if options.b is None:
        networks = against_reference(a)
        with results_console() as console:
            print_networks_compared(networks, console)
    else:
        runs = compare_runs(a, read_summary(run_path(options.b)))
        with results_console() as console:
            print_runs_compared(runs, console)
    return 0
