"""What can be printed of runs? Each takes a summary and a rich console of any width."""

from broadgauge.report.terminal.closing import print_closing_table
from broadgauge.report.terminal.compare import (
    print_arms_compared,
    print_networks_compared,
    print_platforms_compared,
    print_runs_compared,
)
from broadgauge.report.terminal.gate import print_gate
from broadgauge.report.terminal.run import print_run, print_title
from broadgauge.report.terminal.short import print_run_briefly

__all__ = [
    "print_arms_compared",
    "print_closing_table",
    "print_gate",
    "print_networks_compared",
    "print_platforms_compared",
    "print_run",
    "print_run_briefly",
    "print_runs_compared",
    "print_title",
]
