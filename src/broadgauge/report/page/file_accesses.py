"""Which rows say how a storage was written and read? On the page."""

from broadgauge.report.page.markup import Html, table
from broadgauge.report.rows.file_accesses import HEAD, file_access_rows
from broadgauge.results.model import CaseSummary


def file_accesses_table(summary: CaseSummary) -> Html:
    """Nothing where nothing was measured."""
    rows = list(file_access_rows(summary))
    return table(HEAD, rows, class_="cards-below") if rows else Html()
