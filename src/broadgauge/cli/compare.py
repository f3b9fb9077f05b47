"""`broadgauge compare`: is one run, or one network of a run, different from another?"""

import argparse
from typing import TYPE_CHECKING, Any

from broadgauge.cli.collector import no_collections
from broadgauge.results.run_path import RUN_HELP

if TYPE_CHECKING:
    from rich.console import Console

    from broadgauge.results.comparing.gate import Gate
    from broadgauge.results.model import RunSummary


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="compare two runs, or the networks of one",
        description="With one run: its cases against those of its baseline (`run --against`), and "
        "its networks against the fastest, paired block by block. With two: each case that both "
        "have, by its settings or else its names. Ratios with 95 % intervals over launches.",
        allow_abbrev=False,
    )
    parser.add_argument("a", metavar="A", help=RUN_HELP)
    parser.add_argument("b", metavar="B", nargs="?", help="another, compared with A")
    parser.add_argument(
        "--fail-above",
        metavar="PERCENT",
        help="end with exit code 6 where a case of A is slower than its baseline by more than "
        "this (`3%%`), and with 7 where the launches can't tell: two runs were not interleaved",
    )
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.report.terminal.printing import print_gate, print_runs_compared
    from broadgauge.results.comparing.compare_cases import compare_runs
    from broadgauge.results.comparing.gate import gate_across_runs, parse_limit
    from broadgauge.results.comparing.run_matching import check_any
    from broadgauge.results.run_path import read_summary, run_path

    limit_ratio = None if options.fail_above is None else parse_limit(options.fail_above)
    a = read_summary(run_path(options.a))
    if options.b is None:
        return _compare_within(a, limit_ratio)
    runs = compare_runs(a, read_summary(run_path(options.b)))
    with results_console() as console:
        print_runs_compared(runs, console)
        check_any(runs)
        if limit_ratio is None:
            return 0
        found = gate_across_runs(runs, limit_ratio)
        print_gate(found, console)
    return found.outcome.exit_code


def _compare_within(run: "RunSummary", limit_ratio: float | None) -> int:
    """Its arms, then its networks. Returns the gate's exit code."""
    from broadgauge.cli.console import results_console
    from broadgauge.report.terminal.printing import (
        print_networks_compared,
        print_platforms_compared,
    )
    from broadgauge.report.terminal.tables import sentence
    from broadgauge.report.words.links import reference_words
    from broadgauge.report.words.printable import lasting
    from broadgauge.results.comparing.arms import of_arm
    from broadgauge.results.comparing.compare_cases import against_reference, between_platforms
    from broadgauge.results.comparing.gate import gate
    from broadgauge.specs.errors import InputError

    if run.plan.baseline is None and limit_ratio is not None:
        raise InputError(
            f"{run.folder} has no baseline to fail above",
            hint="`broadgauge run EXPERIMENT --against RUN` measures one beside it",
        )
    code = 0
    networks = against_reference(of_arm(run, "candidate"))
    platforms = between_platforms(run)
    with results_console() as console:
        for note in lasting(run.notes):
            sentence(f"note: {note}", console, "dim")
        if run.plan.baseline is not None:
            code = show_arms(run, console, None if limit_ratio is None else gate(run, limit_ratio))
        if platforms:
            print_platforms_compared(platforms, console)
        if networks or (run.plan.baseline is None and not platforms):
            print_networks_compared(
                networks,
                console,
                is_imported=run.plan.is_imported,
                reference=reference_words(run),
            )
    return code


def show_arms(run: "RunSummary", console: "Console", gate: "Gate | None") -> int:
    """Print the experiment against its baseline, where it has one. Returns the gate's exit code.

    Without a gate, how they compare.
    """
    from broadgauge.report.terminal.printing import print_arms_compared, print_gate
    from broadgauge.results.comparing.arms import arms_compared

    if run.plan.baseline is None:
        return 0
    console.print()
    if gate is None:
        print_arms_compared(run.plan.baseline, arms_compared(run), console)
        return 0
    print_gate(gate, console, run.plan.baseline)
    return gate.outcome.exit_code
