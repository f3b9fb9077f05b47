"""What does a whole training take, in the terminal? One row a case."""

from rich.console import Console

from broadgauge.report.completion_rows import COMPLETION_TITLE, completion_notes, completion_rows
from broadgauge.report.terminal_tables import heading, print_table, sentence
from broadgauge.report.words import printable
from broadgauge.results.model import RunSummary


def print_completion(run: RunSummary, console: Console) -> None:
    """Nothing where nothing is known of whole trainings."""
    head, rows = completion_rows(run)
    if not rows:
        return
    heading(COMPLETION_TITLE, console)
    print_table(head, rows, console)
    for note in completion_notes(run):
        sentence(printable(note), console, "dim")
