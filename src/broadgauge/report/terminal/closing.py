"""What does a run say in the terminal? A table where it fits, stacked lines where it does not."""

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.rows.closing import (
    NetworkRow,
    TableColumn,
    columns,
    table_rows,
)
from broadgauge.report.rows.cost import cost_notes
from broadgauge.report.rows.launch_counts import (
    launches_sentence,
    shared_launches,
    without_launches,
)
from broadgauge.report.rows.wide_columns import wide_columns
from broadgauge.report.terminal.claims import print_hypotheses
from broadgauge.report.terminal.matrix import print_pairs
from broadgauge.report.terminal.platforms import print_platforms
from broadgauge.report.terminal.tables import fits, indented, plain_table, sentence
from broadgauge.report.words.cells import EMPTY, Cell
from broadgauge.report.words.failures import all_failed, has_failed_whole
from broadgauge.report.words.printable import lasting, printable

NARROWEST_NAME = 9
NARROWEST_VERDICT = 60
LONGEST_WORD = 12
"""Of a verdict: that much of a line may stay empty."""
STYLES = {
    Bound.NETWORK: "bold yellow",
    Bound.HOST: "bold magenta",
    Bound.COMPUTE: "bold green",
    Bound.STORAGE: "bold cyan",
    Bound.UNKNOWN: "bold",
}


def print_closing_table(
    analysed: AnalysedRun, console: Console, *, has_all: bool = False, details: str | None = None
) -> None:
    """The end of `broadgauge run`: what each network gave, what it means, and what was asked.
    `details`: the command that prints the rest."""
    run, analysis = analysed.run, analysed.analysis
    rows = table_rows(run, analysis, analysed.cost)
    failed = all_failed(row.job for row in rows)
    if failed is not None:
        sentence(f"{failed[:1].upper()}{failed[1:]}.", console, "bold red")
        console.print()
    full = columns(rows)
    launches = shared_launches(rows, full)
    shown = tuple(without_launches(column, launches) for column in full)
    if rows and not any(
        _print_columns(rows, each, console) for each in (wide_columns(shown, rows), shown)
    ):
        console.print(_stacked(rows, shown, console))
    if launches is not None:
        sentence(launches_sentence(launches), console, "dim")
    print_platforms(analysis, console)
    print_pairs(run, analysis, console)
    print_hypotheses(analysis, console, has_all=has_all, details=details)
    for note in (*cost_notes(analysed.cost), *analysis.notes, *lasting(run.notes)):
        sentence(f"note: {printable(note)}", console, "dim")
    if analysis.shared_cores is not None:
        sentence(f"warning: {analysis.shared_cores}", console, "bold yellow")


def _print_columns(
    rows: tuple[NetworkRow, ...], shown: tuple[TableColumn, ...], console: Console
) -> bool:
    """Prices below the table where there is no room in it. False: it is too wide."""
    if _print_table(rows, shown, console):
        return True
    unpriced = tuple(column for column in shown if not column.is_price)
    if len(unpriced) == len(shown) or not _print_table(rows, unpriced, console):
        return False
    _print_prices(rows, (shown[0], *(each for each in shown if each.is_price)), console)
    return True


def _print_table(
    rows: tuple[NetworkRow, ...], shown: tuple[TableColumn, ...], console: Console
) -> bool:
    """With the verdicts in it or below it; False: it is too wide for either."""
    cells = [[cell_text(column.cell(row)) for column in shown] for row in rows]
    verdicts = [verdict_text(row.verdict).append(_failures(row)) for row in rows]
    narrow = _table(cells, shown, gap=1)
    if not fits(narrow, console):
        return False
    if fits(with_verdicts := _table(cells, shown, verdicts=verdicts), console):
        console.print(with_verdicts)
        return True
    table = _table(cells, shown)
    table = table if fits(table, console) else narrow
    console.print(Group(table, Text(), *_sentences(rows, console)))
    return True


def _print_prices(
    rows: tuple[NetworkRow, ...], shown: tuple[TableColumn, ...], console: Console
) -> None:
    """The dollars of those rows that have any."""
    console.print()
    priced = [row for row in rows if row.cost is not None]
    console.print(_table([[cell_text(each.cell(row)) for each in shown] for row in priced], shown))


def _table(
    rows: Sequence[Sequence[Text]],
    shown: tuple[TableColumn, ...],
    *,
    gap: int = 2,
    verdicts: Sequence[Text] = (),
) -> Table:
    table = plain_table(gap=gap)
    table.add_column(shown[0].title, min_width=NARROWEST_NAME, overflow="fold")
    for index, column in enumerate(shown[1:], start=1):
        words = [column.title, *(cells[index].plain for cells in rows)]
        width = max(len(line) for word in words for line in word.split("\n"))
        table.add_column(column.title, justify="right", min_width=width, no_wrap=True)
    if verdicts:
        table.add_column("verdict", min_width=_two_lines_width(verdicts))
    for index, cells in enumerate(rows):
        table.add_row(*cells, *verdicts[index : index + 1])
    return table


def _two_lines_width(verdicts: Sequence[Text]) -> int:
    """What the longest sentence needs for two lines, with room for where its words break."""
    return max(NARROWEST_VERDICT, max(text.cell_len for text in verdicts) // 2 + LONGEST_WORD)


def _sentences(rows: Iterable[NetworkRow], console: Console) -> Iterable[RenderableType]:
    for row in rows:
        yield Text(f"{row.title}{_failures(row)}", style="bold")
        yield from indented(verdict_text(row.verdict), console)


def _failures(row: NetworkRow) -> str:
    """How many; nothing where its verdict says that all did."""
    is_told = has_failed_whole(row.job)
    return f" ({row.num_failed} failed)" if row.num_failed and not is_told else ""


def _stacked(
    rows: tuple[NetworkRow, ...], shown: tuple[TableColumn, ...], console: Console
) -> RenderableType:
    """Below the width of the table: one block a row, one line a figure."""
    blocks: list[RenderableType] = []
    width = max(len(column.title) for column in shown) + 2
    for row in rows:
        blocks.append(Text(f"{row.title}{_failures(row)}", style="bold"))
        for column in shown[1:]:
            cell = column.cell(row)
            if cell is not None:
                line = Text(f"  {column.title:<{width}}", style="dim")
                line.append(cell.main, style="not dim")
                line.append(f"  {cell.under}".rstrip().replace("\n", ", "))
                blocks.append(line)
        blocks.extend(indented(verdict_text(row.verdict), console))
        blocks.append(Text())
    return Group(*blocks)


def cell_text(cell: Cell | None) -> Text:
    """The figure, and its spread on the line below."""
    cell = EMPTY if cell is None else cell
    text = Text(cell.main)
    if cell.under:
        text.append(f"\n{cell.under}", style="dim")
    return text


def verdict_text(verdict: Verdict) -> Text:
    """The sentence with its bound in colour, where it begins with it."""
    bound = verdict.bound.value
    if not verdict.sentence.startswith(bound):
        return Text(verdict.sentence)
    text = Text(bound, style=STYLES[verdict.bound])
    text.append(verdict.sentence.removeprefix(bound), style="none")
    return text
