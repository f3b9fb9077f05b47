"""Where does a step's time go, in the terminal? One row a traced case."""

from rich.console import Console

from broadgauge.report.step_parts import TITLE, part_notes, part_rows
from broadgauge.report.terminal_tables import heading, print_table, sentence
from broadgauge.report.words import printable
from broadgauge.results.model import RunSummary


def print_step_parts(run: RunSummary, console: Console) -> None:
    """Nothing where nothing was traced."""
    head, rows = part_rows(run)
    notes = list(part_notes(run))
    if not rows and not notes:
        return
    heading(f"{TITLE}, by the profiler", console)
    if rows:
        print_table(head, rows, console)
    for note in notes:
        sentence(printable(note), console, "dim")
