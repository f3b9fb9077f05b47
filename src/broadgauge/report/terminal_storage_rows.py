"""What did each phase do on a storage? Every measured row, in the terminal."""

from rich.console import Console
from rich.text import Text

from broadgauge.report.storage_rows import HEAD, storage_row_words
from broadgauge.report.terminal_tables import indented, print_table
from broadgauge.report.words import plain
from broadgauge.results.model import CaseSummary


def print_storage_rows(summary: CaseSummary, console: Console) -> None:
    """A table, then what proves it; nothing where none was measured."""
    rows = storage_row_words(summary)
    if not rows:
        return
    console.print()
    head = (f"{HEAD[0]}, {HEAD[1]}", *HEAD[2:])
    print_table(
        head, [(f"{row.cells[0]}, {row.cells[1]}", *row.cells[2:]) for row in rows], console
    )
    console.print()
    for row in rows:
        if row.below:
            words = Text(plain(f"{row.cells[0]}, {row.cells[1]}: {row.below}"), style="dim")
            for line in indented(words, console):
                console.print(line)
