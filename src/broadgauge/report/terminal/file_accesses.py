"""Which rows say how a storage was written and read? In the terminal."""

from rich.console import Console

from broadgauge.report.rows.file_accesses import HEAD, file_access_rows
from broadgauge.report.terminal.tables import print_table
from broadgauge.results.model import CaseSummary


def print_file_accesses(summary: CaseSummary, console: Console) -> None:
    """Nothing where nothing was measured."""
    if rows := list(file_access_rows(summary)):
        console.print()
        print_table(HEAD, rows, console)
