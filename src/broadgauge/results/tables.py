"""What is a table of a run? Columns of one kind of cell each, in a fixed order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from broadgauge.specs.records.record import Record

CellKind = Literal["text", "integer", "number", "truth"]
Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportColumn:
    name: str
    kind: CellKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    columns: tuple[ExportColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTable:
    """What a trial of one kind of workload measured in rows of its own."""

    columns: dict[str, CellKind]
    """By name; those of a later version come behind."""
    rows_of: Callable[[Record], Iterator[dict[str, Cell]]]
    """Each with every column, in their order."""
