"""What does a table look like from Python? Rows to go through, or a data frame, or Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broadgauge.api.asking import text
from broadgauge.api.display import Displayed
from broadgauge.report.page.markup import Html, join, table, tag
from broadgauge.results.tables import Cell, CellKind, ExportColumn, ExportTable
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_ROWS, MOST_COLUMNS = 20, 12
"""Of a display; `to_pandas()` has all of them."""
_PANDAS_TYPES: dict[CellKind, str] = {
    "text": "string",
    "integer": "Int64",
    "number": "float64",
    "truth": "boolean",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table(Displayed):
    """Rows under named columns. The unit of a column is the end of its name; None: not known.

    `len(table)` is the number of rows, and going through it gives each row as a dict.
    """

    name: str
    cells: ExportTable
    """Typed columns and rows, as they are exported."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(column.name for column in self.cells.columns)

    def __len__(self) -> int:
        return len(self.cells.rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        names = self.columns
        return (dict(zip(names, row, strict=True)) for row in self.cells.rows)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self)} rows of {len(self.columns)} columns>"

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of one column, from the first row to the last.

        Raises InputError where the table has no such column.
        """
        names = self.columns
        if text("name", name) not in names:
            raise InputError(
                f"table {self.name} has no column `{name}`", hint=did_you_mean(name, names)
            )
        place = names.index(name)
        return tuple(row[place] for row in self.cells.rows)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame of `len(table)` rows: strings, Int64, float64 and booleans.

        What is not known is <NA>, and NaN among numbers. Raises InputError where pandas is not
        installed.

        Example: `open_run("last").records.to_pandas().groupby(["arm", "network"])["step_time_s"]`
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise InputError(
                f"data frames need pandas, which can't be imported: {error}",
                hint="pip install 'broadgauge[pandas]'",
            ) from None
        columns = {
            column.name: pd.Series(self.column(column.name), dtype=_PANDAS_TYPES[column.kind])
            for column in self.cells.columns
        }
        return pd.DataFrame(columns)

    def to_arrow(self) -> pa.Table:
        """An Arrow table of the same columns; what is not known is null.

        Raises InputError where pyarrow is not installed.
        """
        from broadgauge.report.export.parquet import arrow_table

        return arrow_table(self.cells, self.name)

    def _html(self) -> Html:
        shown = self.cells.columns[:MOST_COLUMNS]
        rows = [[show_cell(cell) for cell in row[: len(shown)]] for row in self.cells.rows]
        size = f"{self.name}: {len(self)} rows of {len(self.columns)} columns"
        is_cut = len(self) > MOST_ROWS or len(self.columns) > MOST_COLUMNS
        more = f", of which this shows {min(len(self), MOST_ROWS)} and {len(shown)}"
        return join(
            tag("p", size + (more if is_cut else ""), class_="faint"),
            table([column.name for column in shown], rows[:MOST_ROWS]),
        )

    def _plain(self) -> str:
        return repr(self)


def show_cell(cell: Cell) -> str:
    """As short as six digits say it."""
    return "–" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def table_of_rows(
    name: str, rows: Sequence[dict[str, Any]], columns_of_none: Sequence[str] = ()
) -> Table:
    """Rows that have the same keys; the kind of a column is that of the values in it.

    `columns_of_none`: of text, where there may be no row at all.
    """
    columns = tuple(
        ExportColumn(name=column, kind=_kind([row[column] for row in rows]) if rows else "text")
        for column in (rows[0] if rows else columns_of_none)
    )
    cells = tuple(tuple(row[column.name] for column in columns) for row in rows)
    return Table(name, ExportTable(columns=columns, rows=cells))


def _kind(values: Sequence[object]) -> CellKind:
    types = {type(value) for value in values if value is not None}
    if types <= {bool}:
        return "truth" if types else "number"
    if types <= {int}:
        return "integer"
    return "number" if types <= {int, float} else "text"
