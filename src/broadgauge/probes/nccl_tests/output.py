"""What did nccl-tests measure? Read from its table, or from its JSON where the version writes it.

The table's row is `size count type [redop [root]]`, and then twice, out of place and in place,
`time algbw busbw #wrong`: microseconds, 10^9 byte/s, and `N/A` for what was not checked (all_to_all
and send_recv never are in place). Before
2.13 the last column is an error instead of a count; the footer's verdict holds for all versions.
Source: nccl-tests, src/common.cu of 2.10 to 2.17, src/util.cu of 2.18 to 2.19.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_WRONG = re.compile(r"^# Out of bounds values : (\d+)", re.MULTILINE)
_VERSION = re.compile(r"^# nccl-tests version (\S+) .*nccl-library=(\d+)", re.MULTILINE)
_CELL = re.compile(r"N/A|[-+]?\d[-+0-9.e]*|inf|nan|-nan")
_TIMESTAMP = re.compile(r"\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$")
_CELLS_OF_ROW = {4: (None, 0), 8: (0, 4), 16: (0, 8)}
"""Number of cells → where those out of place and in place begin. 4: in place alone, of a replayed
trace; 16: with four figures of the iterations after each."""
_LEGACY_NCCL_CODE = 10_000


class OutputError(Exception):
    """This is not what nccl-tests writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """One size, out of place."""

    size_bytes: int
    time_s: float
    """Mean over the iterations, of the rank that `-a` names."""
    busbw_gbyte_per_s: float
    was_checked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row as it is printed: time in us, algbw, busbw, and how many values are wrong."""

    size_bytes: int
    dtype: str
    """`float`, `half`, …"""
    redop: str | None
    root: str | None
    out_of_place: tuple[str, ...] | None
    """Four cells; None: a replayed trace is in place alone."""
    in_place: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    rows: tuple[SizeRow, ...]
    is_correct: bool | None
    """Of all sizes, in place too; None: not checked."""
    version: str | None
    nccl: str | None
    """The library it ran with."""


def read_text(text: str, hostname: str) -> Output:
    """Raises OutputError where there is no row.

    NCCL's log lines, which begin with the host's name, may stand in the middle of a row: both go
    through the same buffer.
    """
    host = hostname.split(".", maxsplit=1)[0]
    plain = re.sub(rf"{re.escape(host)}:\d+:\d+ \[\d+\][^\n]*\n", "", text)
    rows = [row for line in plain.splitlines() if (row := _row(line)) is not None]
    if not rows:
        raise OutputError("no row in the output of nccl-tests")
    wrong, version = _WRONG.search(plain), _VERSION.search(plain)
    if wrong is None:
        raise OutputError("the output of nccl-tests has no footer")
    return Output(
        rows=tuple(rows),
        is_correct=_verdict(rows, int(wrong[1])),
        version=None if version is None else version[1],
        nccl=None if version is None else nccl_version(int(version[2])),
    )


def _row(line: str) -> SizeRow | None:
    row = read_row(line)
    if row is None or row.out_of_place is None:
        return None
    time_us, _algbw, busbw, wrong = row.out_of_place
    return _checked(row.size_bytes, float(time_us), float(busbw), was_checked=wrong != "N/A")


def read_row(line: str) -> TableRow | None:
    """One row of the table, its cells as they are printed; None: it is none."""
    words = _TIMESTAMP.sub("", line).split()
    if len(words) < 7 or not (words[0].isdecimal() and words[1].isdecimal()):
        return None
    size, _count, dtype, *cells = words
    redop = root = None
    if cells[0].isalpha() and cells[0] not in ("inf", "nan"):
        redop, *cells = cells
    if len(cells) % 2:
        root, *cells = cells
    if len(cells) not in _CELLS_OF_ROW or not all(map(_CELL.fullmatch, cells)):
        return None
    out, inside = _CELLS_OF_ROW[len(cells)]
    return TableRow(
        size_bytes=int(size),
        dtype=dtype,
        redop=redop,
        root=root,
        out_of_place=None if out is None else tuple(cells[out : out + 4]),
        in_place=tuple(cells[inside : inside + 4]),
    )


def _verdict(rows: Sequence[SizeRow], wrong_count: int) -> bool | None:
    """The footer counts what was wrong in all rows; unchecked ones count as right there."""
    if wrong_count:
        return False
    return True if all(row.was_checked for row in rows) else None


def read_json(text: str) -> Output:
    """Raises OutputError for what nccl-tests would not write."""
    try:
        said = json.loads(text)
        results = said["results"]
        rows = tuple(_json_row(result) for result in results)
        wrong = int(said["out_of_bounds"]["count"])
        code = int(said["nccl_version"])
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        raise OutputError(f"the JSON of nccl-tests can't be read: {error!r}") from error
    if not rows:
        raise OutputError("no result in the JSON of nccl-tests")
    return Output(
        rows=rows,
        is_correct=_verdict(rows, wrong),
        version=None,
        nccl=nccl_version(code),
    )


def _json_row(result: Any) -> SizeRow:
    body = result["out_of_place"]
    return _checked(
        int(result["size"]),
        float(body["time"]),
        float(body["bus_bw"]),
        was_checked=body["nwrong"] is not None,
    )


def _checked(size_bytes: int, time_us: float, busbw: float, *, was_checked: bool) -> SizeRow:
    if not (math.isfinite(time_us) and time_us > 0):
        raise OutputError(f"nccl-tests took {time_us} us for {size_bytes} bytes")
    return SizeRow(
        size_bytes=size_bytes,
        time_s=time_us / 1e6,
        busbw_gbyte_per_s=busbw,
        was_checked=was_checked,
    )


def nccl_version(code: int) -> str:
    """22809 is 2.28.9. Source: nccl.h, NCCL_VERSION: another factor before 2.9."""
    major = 10_000 if code >= _LEGACY_NCCL_CODE else 1_000
    return f"{code // major}.{code % major // 100}.{code % 100}"
