"""Which figures of a record can be computed with? Finite ones, as far from 0 as anything measured.

A trial's command may print whatever it likes, and older folders hold what it printed. The square of
1e308 is no double any more, and would end every view of the run.
"""

import math
from collections.abc import Iterable

from broadgauge.specs.base import StoredModel
from broadgauge.specs.records.record import Record

LARGEST = 1e100
"""Far above all that can be measured; squares and sums of many of them are still doubles."""
_ROWS = ("collectives", "nodes", "gpus", "clocks")


def without_unusable(record: Record) -> Record:
    """Metrics that can't be used become null with the reason; rows that hold one are left out."""
    metrics = {name: value for name, value in record.metrics.items() if value is not None}
    if _are_usable((*metrics.values(), *_numbers_of(_rows_of(record)))):
        return record
    bad = {name: _why(value) for name, value in metrics.items() if not _are_usable((value,))}
    update: dict[str, object] = {}
    missing = dict(record.missing) | bad
    if bad:
        update["metrics"] = {name: None if name in bad else v for name, v in record.metrics.items()}
    for name in _ROWS:
        rows: tuple[StoredModel, ...] = getattr(record, name)
        if all(map(_is_usable, rows)):
            continue
        usable = tuple(row for row in rows if _is_usable(row))
        update[name] = usable
        missing[name] = f"{len(rows) - len(usable)} of {len(rows)} held no number that can be used"
    if record.link is not None and not _is_usable(record.link):
        update["link"] = None
        missing["link"] = "no number that can be used"
    return record.model_copy(update={**update, "missing": missing}) if update else record


def _rows_of(record: Record) -> Iterable[StoredModel]:
    link = () if record.link is None else (record.link,)
    return (*record.collectives, *record.nodes, *record.gpus, *record.clocks, *link)


def _why(value: float) -> str:
    if LARGEST < abs(value) < float("inf"):
        return f"a number above {LARGEST:.0e} can't be used: {value:.3g}"
    return f"not a finite number: {value}"


def _is_usable(row: StoredModel) -> bool:
    return _are_usable(_numbers_of((row,)))


def _numbers_of(rows: Iterable[StoredModel]) -> list[float]:
    """Theirs, and those of the NICs in them. (Dumps would take ten times as long.)"""
    numbers: list[float] = []
    for row in rows:
        for value in row.__dict__.values():
            kind = value.__class__
            if kind is float or kind is int:
                numbers.append(value)
            elif kind is tuple and value and isinstance(value[0], StoredModel):
                numbers += _numbers_of(value)
    return numbers


def _are_usable(numbers: Iterable[float]) -> bool:
    """At once: the root of their squares is no less than the largest, and NaN where one is."""
    try:
        return math.hypot(*numbers) <= LARGEST
    except OverflowError:  # a whole number of hundreds of digits
        return False
