"""Where does a step's time go, on the page?"""

from broadgauge.report.markup import Html, join, table, tag, text_lines
from broadgauge.report.step_parts import (
    COLLECTIVES_HOW,
    HOW,
    TITLE,
    collective_rows,
    part_notes,
    part_rows,
)
from broadgauge.results.model import RunSummary


def step_parts(run: RunSummary) -> Html:
    """A row a traced case and what must be known beside it; nothing where nothing was traced."""
    head, rows = part_rows(run)
    notes = list(part_notes(run))
    if not rows and not notes:
        return Html()
    return join(
        tag("h2", TITLE),
        tag("p", HOW, class_="how"),
        table(
            head,
            [(label, *map(text_lines, cells)) for label, *cells in rows],
            class_="text tight cards-below",
        )
        if rows
        else "",
        tag("ul", [tag("li", note) for note in notes]) if notes else "",
        _collectives(run),
    )


def _collectives(run: RunSummary) -> Html:
    head, rows = collective_rows(run)
    if not rows:
        return Html()
    how = tag("p", COLLECTIVES_HOW, class_="how")
    return join(how, table(head, rows, class_="text cards-below"))
