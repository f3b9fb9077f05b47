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
_CELL = r"\s+(?:N/A|[-+0-9.e]+|inf|nan)"
_ROW = re.compile(rf"^\s*(\d+)\s+\d+\s+\w+(?:\s+\w+)?(?:\s+-?\d+)?((?:{_CELL}){{8}})\s*$")
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
    match = _ROW.match(line)
    if match is None:
        return None
    time_us, _algbw, busbw, wrong = match[2].split()[:4]
    return _checked(int(match[1]), float(time_us), float(busbw), was_checked=wrong != "N/A")


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
