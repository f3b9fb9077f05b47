"""How do a run's storages stand beside each other, in the terminal?"""

from rich.console import Console

from broadgauge.report.storage_table_rows import HEAD, HOUR_TITLE, TITLE, storage_table_words
from broadgauge.report.terminal_tables import heading, print_table, sentence
from broadgauge.report.words import printable
from broadgauge.results.model import RunSummary


def print_storages(run: RunSummary, console: Console) -> None:
    """Nothing where none was measured."""
    words = storage_table_words(run)
    if words is None:
        return
    heading(TITLE, console)
    print_table(HEAD, words.rows, console)
    for line in words.sentences:
        sentence(printable(line), console)
    heading(HOUR_TITLE, console)
    print_table(words.hour_head, words.hour_rows, console)
    for note in words.notes:
        sentence(f"note: {printable(note)}", console, "dim")
