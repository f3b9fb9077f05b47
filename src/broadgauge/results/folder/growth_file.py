"""How is kept what was added to a plan while it ran? One line for each time, never rewritten.

`plan_growth.jsonl` is there only where a plan grew. A line is synced before any of its launches
runs, so a record's launch is always known; a torn last line belongs to nothing that ran.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from broadgauge.results.folder import disk
from broadgauge.results.folder.unreadable import HINT
from broadgauge.specs.case import Case
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.plan import Plan

GROWTH_FILE = "plan_growth.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGrowth:
    """What a growth file says."""

    lines: tuple[dict[str, Any], ...]
    """As they are stored; `added_to` makes them a part of a stored plan, which is validated."""
    good: bytes
    """The lines as they stand in the file, without its torn last one."""


def read_growth(path: Path) -> ReadGrowth:
    """Raises RunFolderError, with file:line where a line before the last is broken."""
    try:
        with disk.telling("read", path):
            data = disk.read_whole(path, flags=os.O_NOFOLLOW)
    except RunFolderError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ReadGrowth(lines=(), good=b"")
        raise
    *lines, torn = data.split(b"\n")
    values: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        value = _value(line)
        if value is not None:
            values.append(value)
        elif number == len(lines) and not torn:
            torn = line + b"\n"  # a power failure leaves zeros in front of a newline
        else:
            raise RunFolderError(f"{path}:{number}: no part of a plan", hint=HINT)
    return ReadGrowth(lines=tuple(values), good=data[: len(data) - len(torn)])


def _value(line: bytes) -> dict[str, Any] | None:
    try:
        value = from_json(line)
    except ValueError:
        return None
    is_whole = isinstance(value, dict) and all(
        isinstance(value.get(key), list) for key in ("cases", "launches")
    )
    return value if is_whole else None


def added_to(plan: Any, growth: ReadGrowth) -> Any:
    """A stored plan as if all of it had been planned at once; not validated yet."""
    parts = ("cases", "launches")
    if not isinstance(plan, dict) or not all(isinstance(plan.get(part), list) for part in parts):
        return plan
    if not growth.lines:
        return plan
    merged = {
        part: [*plan[part], *(each for line in growth.lines for each in line[part])]
        for part in parts
    }
    growths = [
        {
            **{key: value for key, value in line.items() if key not in parts},
            **{f"num_{part}": len(line[part]) for part in parts},
        }
        for line in growth.lines
    ]
    return {**plan, **merged, "growths": growths}


def growth_line(before: Plan, after: Plan) -> bytes:
    """What the plan has grown by, as it is stored."""
    assert after.launches[: len(before.launches)] == before.launches, "a plan grows at its end"
    assert after.cases[: len(before.cases)] == before.cases
    grown = after.growths[-1]
    form = {
        "grown_unix_s": grown.grown_unix_s,
        "reason": grown.reason,
        "cases": stored_cases(after.cases[len(before.cases) :]),
        "launches": [
            launch.model_dump(mode="json") for launch in after.launches[len(before.launches) :]
        ],
    }
    return json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def stored_cases(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Defaults are left out: an older version, which refuses what it does not know of a case, can
    read every run that uses nothing new."""
    return [case.model_dump(mode="json", exclude_defaults=True) for case in cases]
