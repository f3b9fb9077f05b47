"""How does the closing table look where there is room? What stands below a figure and its spread is
a column of its own, or part of its column's title: a row is two lines."""

import textwrap
from collections.abc import Iterator
from dataclasses import replace

from broadgauge.report.rows.closing import NetworkRow, TableColumn
from broadgauge.report.words.cells import Cell


def wide_columns(
    shown: tuple[TableColumn, ...], rows: tuple[NetworkRow, ...]
) -> tuple[TableColumn, ...]:
    """The same figures beside each other."""
    found: dict[str, TableColumn] = {}
    for column in shown:
        for wide in _spread_out(column, rows):
            same = found.get(wide.title)
            found[wide.title] = wide if same is None else _either(same, wide)
    return tuple(found.values())


def _spread_out(column: TableColumn, rows: tuple[NetworkRow, ...]) -> Iterator[TableColumn]:
    belows = {cell.below for row in rows if (cell := column.cell(row)) is not None and cell.below}
    if not belows or column.beside is None:
        yield replace(column, cell=lambda row: _on_two_lines(column.cell(row)))
        return
    plain = replace(column, cell=lambda row: _without_below(column.cell(row)))
    if column.is_named_below and len(belows) == 1:
        yield replace(plain, title=_on_two_lines_of_title(f"{column.title} {belows.pop()}"))
        return
    yield plain
    if not column.beside:
        return
    title = column.beside
    yield TableColumn(
        title=title, cell=lambda row: _below(column.cell(row), title), is_price=column.is_price
    )


def _on_two_lines_of_title(words: str) -> str:
    """`scaling per rank of 1x1` → `scaling per`, `rank of 1x1`."""
    longest = max(map(len, words.split()))
    wrapped = (textwrap.wrap(words, width) for width in range(longest, len(words) + 1))
    return "\n".join(next(lines for lines in wrapped if len(lines) <= 2))


def _on_two_lines(cell: Cell | None) -> Cell | None:
    """`200 Gbit/s nominal`."""
    return None if cell is None else replace(cell, sub=cell.under.replace("\n", " "), below="")


def _without_below(cell: Cell | None) -> Cell | None:
    return None if cell is None else replace(cell, below="")


def _below(cell: Cell | None, title: str) -> Cell | None:
    """`99 % of line` → `99 %`, below the title `of line`."""
    if cell is None or not cell.below:
        return None
    words = cell.below.replace("\n", " ").removesuffix(title.removeprefix("$"))
    return Cell(main=words.removeprefix(title).strip(), detail=cell.detail)


def _either(one: TableColumn, other: TableColumn) -> TableColumn:
    return replace(one, cell=lambda row: one.cell(row) or other.cell(row))
