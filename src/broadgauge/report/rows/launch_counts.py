"""How many launches do a table's figures come from, where no interval says how sure they are?

Said once below the table, not in each cell, where it is the same for all of them.
"""

from collections import Counter
from dataclasses import replace

from broadgauge.report.rows.closing import NetworkRow, TableColumn
from broadgauge.report.words.cells import Cell
from broadgauge.report.words.quantities import LAUNCHES_ONLY


def shared_launches(rows: tuple[NetworkRow, ...], shown: tuple[TableColumn, ...]) -> str | None:
    """`(1 launch)`, where several figures have no interval and all of these say the same."""
    cells = [column.cell(row) for row in rows for column in shown[1:]]
    found = Counter(
        line
        for cell in cells
        if cell is not None
        for line in cell.sub.split("\n")
        if LAUNCHES_ONLY.fullmatch(line)
    )
    return next((words for words, count in found.items() if count > 1 and len(found) == 1), None)


def launches_sentence(words: str) -> str:
    """`(1 launch)` → the sentence below the table that says it for every cell."""
    return f"Figures without an interval: {words.strip('()')} each."


def without_launches(column: TableColumn, words: str | None) -> TableColumn:
    """The column with these words left out of its cells: they stand below the table."""

    def cell(row: NetworkRow) -> Cell | None:
        found = column.cell(row)
        if found is None or words is None:
            return found
        lines = [line for line in found.sub.split("\n") if line != words]
        return replace(found, sub="\n".join(lines))

    return replace(column, cell=cell)
