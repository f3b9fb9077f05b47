"""How do the platforms of one run compare? In the terminal, as it was judged."""

from rich.console import Console

from broadgauge.analysis.model import Analysis, JudgedRatio
from broadgauge.report.terminal.tables import heading, print_table
from broadgauge.report.words.quantities import interval, show, title_of


def print_platforms(analysis: Analysis, console: Console) -> None:
    """Each case on another platform over the same on the first; nothing where there is one."""
    if not analysis.platforms:
        return
    heading("Against the first platform, paired block by block", console)
    head = ("case", "metric", "ratio", "95 % interval", "finding")
    print_table(head, [_cells(row) for row in analysis.platforms], console)


def _cells(row: JudgedRatio) -> tuple[str, ...]:
    labels = (row.b, title_of(row.metric))
    if row.ratio is None or row.verdict is None:
        return (*labels, "–", "–", "; ".join(row.notes))
    ratio = show("speedup_ratio", row.ratio.value)
    return (*labels, ratio, interval("speedup_ratio", row.ratio), row.verdict.value)
