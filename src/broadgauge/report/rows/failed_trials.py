"""Which trials failed? Those of a case that failed alike are told once."""

from collections.abc import Iterable

from broadgauge.results.model import RunSummary
from broadgauge.specs.records.failures import is_alike
from broadgauge.specs.records.record import Record, Status

_MOST_NAMED = 6


def alike(run: RunSummary) -> tuple[tuple[Record, ...], ...]:
    """Failed and timed-out trials, in the order of the first of each kind."""
    groups: list[list[Record]] = []
    for record in run.records:
        if record.status not in (Status.FAILED, Status.TIMEOUT):
            continue
        for group in groups:
            first = group[0]
            if first.case_key == record.case_key and is_alike(first.error, record.error):
                group.append(record)
                break
        else:
            groups.append([record])
    return tuple(map(tuple, groups))


def trial_words(records: Iterable[Record]) -> str:
    """`trial b0.l0.t0`, `trials b0.l0.t0, b1.l0.t0`."""
    ids = [record.record_id for record in records]
    named = ", ".join(ids[:_MOST_NAMED])
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"trial{'' if len(ids) == 1 else 's'} {named}{more}"


def where_words(record: Record) -> str:
    """`hung in phase measure, rank 1`."""
    error = record.error
    if error is None:
        return ""
    where = "" if error.phase is None else f" in phase {error.phase.value}"
    rank = "" if error.rank is None else f", rank {error.rank}"
    return f"{error.kind.value}{where}{rank}"
