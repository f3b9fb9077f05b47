"""How do pairs of nodes, placements, paths and NICs look in the terminal?"""

from rich.console import Console
from rich.text import Text

from broadgauge.analysis.model import Analysis
from broadgauge.report.rows.matrix import (
    NICS_HOW,
    PATHS_HEAD,
    nic_table,
    pair_head,
    pair_rows,
    pairs_shown,
    path_rows,
    placement_rows,
    placement_title,
)
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence
from broadgauge.results.comparing.placement import placements
from broadgauge.results.model import RunSummary
from broadgauge.results.nics import nic_balance
from broadgauge.specs.units import show_size


def print_pairs(run: RunSummary, analysis: Analysis, console: Console) -> None:
    """A matrix of rates for each case that sent between pairs, its slow pairs named."""
    for summary in run.candidates:
        pairs = pairs_shown(summary, analysis)
        if pairs is None:
            continue
        matrix = pairs.matrix
        size = f"{show_size(matrix.size_bytes)} of {matrix.dtype}"
        heading(f"Pairs: {summary.case.label}, {size}", console)
        print_table(pair_head(matrix), pair_rows(pairs), console)
        mark, style = ("! ", "bold yellow") if pairs.slow else ("", "")
        sentence(f"{mark}{pairs.words}", console, style)


def print_placements(run: RunSummary, console: Console) -> None:
    """Equal world sizes side by side."""
    found = placements(run)
    if found:
        heading("Placement of the same number of ranks", console)
    for placement in found:
        console.print(Text(placement_title(placement), style="bold"))
        print_table(("network", *placement.shapes), placement_rows(placement), console)


def print_paths(analysis: Analysis, console: Console) -> None:
    """Which way the bytes inside a node really took."""
    rows = path_rows(analysis)
    if rows:
        heading("Paths inside a node, by NCCL's log and NVLink's counters", console)
        print_table(PATHS_HEAD[:4], [row[:4] for row in rows], console)


def print_nics(run: RunSummary, console: Console) -> None:
    """How evenly the bytes went over the NICs."""
    found = [balance for s in run.candidates if (balance := nic_balance(s)) is not None]
    if not found:
        return
    heading("NICs of a node", console)
    for line in indented(Text(NICS_HOW, style="dim"), console, 0):
        console.print(line)
    print_table(*nic_table(found), console)
