"""Which lines of a CSV file make which record? One broken line takes no other line with it."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.specs.errors import InputError

DELIMITERS = (",", ";", "\t")
MAX_LINES_OF_A_RECORD = 20
"""A quoted cell may hold line breaks; a quote that stays open longer was never closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One row's cells by column."""

    line: int
    cells: dict[str, str]


def read_records(
    data: bytes, filename: str, known: Sequence[str]
) -> tuple[tuple[str, ...], list[TableLine], list[tuple[int, str]]]:
    """Header, records, and the lines that are none, each with its reason. Raises InputError.

    The delimiter is the one that finds most of the `known` columns in the header.
    """
    lines = list(io.StringIO(_text(data, filename), newline=""))
    first = next((i for i, line in enumerate(lines) if line.strip(" \t,;\r\n")), None)
    if first is None:
        raise InputError(f"{filename} is empty", hint="docs/validation.md has the columns")
    delimiter = max(
        DELIMITERS, key=lambda each: len(set(_columns(lines[first], each)) & set(known))
    )
    header = _columns(lines[first], delimiter)
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise InputError(f"{filename}:{first + 1}: the column `{twice[0]}` stands twice")
    records: list[TableLine] = []
    broken: list[tuple[int, str]] = []
    for number, cells in _records(lines, first + 1, delimiter, len(header)):
        if isinstance(cells, str):
            broken.append((number, cells))
        elif any(cell.strip() for cell in cells):
            records.append(TableLine(line=number, cells=dict(zip(header, cells, strict=False))))
    if not records and not broken:
        raise InputError(f"{filename} has a header and no rows")
    return header, records, broken


def _text(data: bytes, filename: str) -> str:
    """Without the byte order mark that spreadsheets write."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{filename}:{line}: this is not UTF-8 text (byte 0x{data[error.start]:02x})",
            hint="save the table as CSV in UTF-8",
        ) from None


def _columns(line: str, delimiter: str) -> tuple[str, ...]:
    cells = next(csv.reader([line], delimiter=delimiter), [])
    return tuple(cell.strip().lower().replace(" ", "_") for cell in cells)


def _records(
    lines: Sequence[str], start: int, delimiter: str, width: int
) -> Iterator[tuple[int, list[str] | str]]:
    """Line number and cells, or the reason why there are none."""
    i = start
    while i < len(lines):
        end = _end_of_record(lines, i)
        cells = _cells("".join(lines[i:end]), delimiter, width)
        is_open = end == i + 1 and lines[i].count('"') % 2 == 1
        if isinstance(cells, str) and (is_open or end > i + 1):
            cells = "a quote is not closed"
            end = i + 1
        yield i + 1, cells
        i = end


def _end_of_record(lines: Sequence[str], start: int) -> int:
    """The line after the one where all quotes are closed, else the next line."""
    num_quotes = 0
    for i in range(start, min(len(lines), start + MAX_LINES_OF_A_RECORD)):
        num_quotes += lines[i].count('"')
        if num_quotes % 2 == 0:
            return i + 1
    return start + 1


def _cells(text: str, delimiter: str, width: int) -> list[str] | str:
    try:
        cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    except csv.Error as error:
        return f"this line is no CSV: {error}"
    while len(cells) > width and not cells[-1].strip():
        cells.pop()
    if cells and len(cells) != width and any(cell.strip() for cell in cells):
        return f"{len(cells)} cells, and the header has {width}"
    return cells
