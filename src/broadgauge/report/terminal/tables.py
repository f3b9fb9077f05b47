"""How do tables look that fit any terminal? Columns where they fit, else one line a cell."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from broadgauge.report.words.printable import plain

MOST_COLUMNS = 10_000
NARROWEST_WORDS = 18
_GAP = 2


def indented(text: Text, console: Console, indent: int = 2) -> list[Text]:
    """The text wrapped to the console, every line indented, nothing at the ends of lines."""
    width = max(20, console.width - indent)
    is_one_line = text.plain.isprintable() and text.cell_len <= width
    lines = [text] if is_one_line else text.wrap(console, width)
    for line in lines:
        line.rstrip()
    return [Text(" " * indent).append_text(line) for line in lines]


def plain_table(*, gap: int = 2) -> Table:
    """A table of few lines, that reads well without colours too."""
    return Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, gap - 1),
        collapse_padding=True,
        show_edge=False,
    )


def fits(table: Table, console: Console) -> bool:
    """Can every figure stand whole?"""
    options = console.options.update(max_width=MOST_COLUMNS)
    return console.measure(table, options=options).minimum <= console.width


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """A table whose first column is words, which may wrap, and whose others are never cut.

    Where it does not fit, each row becomes a block: its first cell, then one line a figure.
    """
    rows = [[plain(cell) for cell in row] for row in rows]
    if _print_plainly(head, rows, console):
        return
    table = _columns(head, rows)
    if fits(table, console):
        console.print(table)
        return
    titles = [title.replace("\n", " ") for title in head[1:]]
    width = max(map(len, titles)) + 2
    for row in rows:
        console.print(Text(row[0], style="bold"))
        for title, cell in zip(titles, row[1:], strict=True):
            if cell not in ("", "–"):
                words = cell.replace("\n", "  ")
                for line in indented(Text(f"{title:<{width}}{words}"), console):
                    console.print(line)


def _print_plainly(head: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> bool:
    """The same table where each row is one line: rich takes 3 ms to find that nothing wraps."""
    lines = [head, *rows]
    if any("\n" in cell for cells in lines for cell in cells):
        return False
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if sum(widths) + _GAP * (len(widths) - 1) > console.width:
        return False
    titles, *body = (_line(cells, widths) for cells in lines)
    rule = "─" * (sum(widths) + _GAP * (len(widths) - 1))
    console.print(Text(titles, style="bold"), soft_wrap=True)
    console.print(Text("\n".join([rule, *body])), soft_wrap=True)
    return True


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first to the left, the others to the right."""
    room = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    others = (blank + cell for blank, cell in zip(room[1:], cells[1:], strict=True))
    return (" " * _GAP).join([cells[0] + room[0], *others])


def fits_columns(head: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> bool:
    """Would `print_table` print columns?"""
    return fits(_columns(head, rows), console)


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = plain_table()
    for index, title in enumerate(head):
        cells = (title, *(row[index] for row in rows))
        width = max(len(line) for cell in cells for line in cell.split("\n"))
        if index == 0:
            table.add_column(title, min_width=min(width, NARROWEST_WORDS))
        else:
            table.add_column(title, justify="right", min_width=width, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def heading(words: str, console: Console) -> None:
    """The title of a part."""
    console.print()
    console.print(Text(words, style="bold underline"))


def sentence(words: str, console: Console, style: str = "") -> None:
    """Words wrapped to the console."""
    for line in indented(Text(plain(words), style=style), console, 0):
        console.print(line)
