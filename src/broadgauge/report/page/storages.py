"""Which storage is fast at which phase? On the page."""

from broadgauge.report.page.markup import Html, join, table, tag, with_sub_lines
from broadgauge.report.rows.storages import HEAD, HOW, storage_rows
from broadgauge.results.model import RunSummary


def storages(run: RunSummary) -> Html:
    """Nothing where there is nothing to put side by side."""
    rows = storage_rows(run)
    if not rows:
        return Html()
    return join(
        tag("h2", "Storages, phase by phase"),
        tag("p", HOW, class_="how"),
        table(HEAD, [map(with_sub_lines, row) for row in rows], class_="cards-below"),
    )
