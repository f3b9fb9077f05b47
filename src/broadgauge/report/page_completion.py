"""What does a whole training take, on the page?"""

from broadgauge.report.completion_rows import (
    COMPLETION_HOW,
    COMPLETION_TITLE,
    completion_notes,
    completion_rows,
)
from broadgauge.report.markup import Html, join, table, tag, text_lines
from broadgauge.results.model import RunSummary


def time_to_completion(run: RunSummary) -> Html:
    """A row a case and what must be known beside it; nothing where nothing is known."""
    head, rows = completion_rows(run)
    if not rows:
        return Html()
    notes = list(completion_notes(run))
    cells = [(label, *map(text_lines, cells)) for label, *cells in rows]
    return join(
        tag("h2", COMPLETION_TITLE),
        tag("p", COMPLETION_HOW, class_="how"),
        table(head, cells, class_="text tight cards-below"),
        tag("ul", [tag("li", note) for note in notes]) if notes else "",
    )
