"""Which storage is fast at which phase? In the terminal."""

from rich.console import Console

from broadgauge.report.rows.storages import HEAD, HOW, storage_rows
from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.results.model import RunSummary


def print_storages(run: RunSummary, console: Console) -> None:
    """Nothing where there is nothing to put side by side."""
    if rows := storage_rows(run):
        heading("Storages, phase by phase", console)
        print_table(HEAD, [[_on_a_line(cell) for cell in row] for row in rows], console)
        sentence(HOW, console, "dim")


def _on_a_line(cell: str) -> str:
    figure, *below = cell.split("\n")
    return f"{figure} ({', '.join(below)})" if below else figure
