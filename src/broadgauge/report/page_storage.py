"""What did storages do? Side by side, and every measured row of each, on the page."""

from broadgauge.report.markup import Html, join, table, tag, text_lines
from broadgauge.report.storage_rows import HEAD, storage_row_words
from broadgauge.report.storage_table_rows import HEAD as TABLE_HEAD
from broadgauge.report.storage_table_rows import HOUR_TITLE, HOW, TITLE, storage_table_words
from broadgauge.results.model import CaseSummary, RunSummary


def storages(run: RunSummary) -> Html:
    """A row a storage, what limits each, and what an hour loses; nothing where none is measured."""
    words = storage_table_words(run)
    if words is None:
        return Html()
    head = [title.replace("\n", " ") for title in TABLE_HEAD]
    rows = [(label, *map(text_lines, cells)) for label, *cells in words.rows]
    said = [*words.sentences, *words.notes]
    return join(
        tag("h2", TITLE),
        tag("p", HOW, class_="how"),
        table(head, rows, class_="text tight cards-below"),
        tag("ul", [tag("li", line) for line in said]) if said else "",
        tag("h3", HOUR_TITLE),
        table(words.hour_head, words.hour_rows, class_="tight cards-below"),
    )


def storage_rows_table(summary: CaseSummary) -> Html:
    """One row a phase, variant and state of the cache; nothing where none was measured."""
    rows = storage_row_words(summary)
    if not rows:
        return Html()
    return table(
        HEAD,
        [
            (
                row.cells[0],
                join(row.cells[1], tag("span", row.below, class_="sub wrapped")),
                *row.cells[2:],
            )
            for row in rows
        ],
        class_="cards-below",
    )
