"""How does a record become one line of at most 64 KiB without NaN?

A record is never lost for being too long: what repeats itself goes first, and what was left out
is said in `missing`. The order: the log lines and the findings' evidence, NCCL's pairs of ranks,
findings beyond 20, the error's message, digits beyond the 7th, waits for batches, parts of ranks
but the busiest, nodes' rows, collectives' rows, repetitions on a storage.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from broadgauge.results.folder.usable_figures import without_unusable
from broadgauge.specs.base import StoredModel
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import MAX_RECORD_BYTES, Finding, Record, Severity

_MOST_LINES = 20
_MOST_LINE_CHARACTERS = 500
_MOST_FINDINGS = 20
FEWEST_ACCESSES = 4
"""Of which every second one is a write and a read, where there are both."""


def record_line(record: Record) -> tuple[bytes, Record]:
    """The line with its newline, and the record as it will be read back."""
    record = without_unusable(record)
    for shorten in (_as_it_is, *_SHORTENINGS):
        record = shorten(record)
        line = _line(record)
        if len(line) <= MAX_RECORD_BYTES:
            return line, record
    while len(line) > MAX_RECORD_BYTES and record.collectives:
        record = _keep_rows(record, "collectives", len(record.collectives) * 3 // 4)
        line = _line(record)
    while len(line) > MAX_RECORD_BYTES and len(record.file_accesses) > FEWEST_ACCESSES:
        record = _half_of_accesses(record)
        line = _line(record)
    if len(line) > MAX_RECORD_BYTES:
        left_out = {"metrics": {}, "missing": _TOO_LONG, "findings": (), "nccl": None}
        record = record.model_copy(update=left_out)
        line = _line(record)
    return line, record


_TOO_LONG = {"metrics": f"the record was longer than {MAX_RECORD_BYTES} bytes"}


def _line(record: Record) -> bytes:
    text = json.dumps(
        record.model_dump(mode="json"),
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode("utf-8", errors="replace") + b"\n"


def _as_it_is(record: Record) -> Record:
    return record


def _shorter_lines(record: Record) -> Record:
    """As many lines as the format promises at most, each as long as it promises at most."""
    return _with_lines(record, _MOST_LINES, _MOST_LINE_CHARACTERS)


def _few_lines(record: Record) -> Record:
    return _with_lines(record, 5, 200)


def _with_lines(record: Record, most: int, characters: int) -> Record:
    update: dict[str, object] = {
        "findings": tuple(
            finding.model_copy(
                update={"evidence": tuple(_cut(e, characters) for e in finding.evidence[:most])}
            )
            for finding in record.findings
        )
    }
    if record.error is not None:
        lines = tuple(_cut(line, characters) for line in record.error.last_lines[-most:])
        update["error"] = record.error.model_copy(update={"last_lines": lines})
    return record.model_copy(update=update)


def _no_pairs(record: Record) -> Record:
    """How many they are stays."""
    if record.nccl is None or not any(way.pairs for way in record.nccl.ways):
        return record
    ways = tuple(way.model_copy(update={"pairs": ()}) for way in record.nccl.ways)
    reason = f"left out: a record has at most {MAX_RECORD_BYTES} bytes"
    update = {
        "nccl": record.nccl.model_copy(update={"ways": ways}),
        "missing": {**record.missing, "nccl.ways.pairs": reason},
    }
    return record.model_copy(update=update)


def _few_findings(record: Record) -> Record:
    """The worst first; the last one says how many are left out."""
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    ranked = sorted(record.findings, key=lambda finding: order[finding.severity])
    num_left_out = len(ranked) - _MOST_FINDINGS
    kept = [
        finding.model_copy(
            update={
                "evidence": (),
                "symptom": _cut(finding.symptom, 300),
                "cause": None if finding.cause is None else _cut(finding.cause, 300),
                "fix": None if finding.fix is None else _cut(finding.fix, 300),
            }
        )
        for finding in ranked[:_MOST_FINDINGS]
    ]
    if num_left_out > 0:
        symptom = f"{num_left_out} findings more did not fit in the record"
        kept.append(Finding(rule="record-too-long", severity=Severity.INFO, symptom=symptom))
    return record.model_copy(update={"findings": tuple(kept)})


def _short_error(record: Record) -> Record:
    update: dict[str, object] = {
        "missing": {_cut(name, 100): _cut(why, 200) for name, why in record.missing.items()}
    }
    if record.error is not None:
        cut = {"message": _cut(record.error.message, 1000), "last_lines": ()}
        update["error"] = record.error.model_copy(update=cut)
    return record.model_copy(update=update)


def _few_digits(record: Record) -> Record:
    """Seven digits are more than any clock here gives."""
    update = {
        name: tuple(row.model_copy(update=_rounded(row.model_dump())) for row in rows)
        for name, rows in (
            ("collectives", record.collectives),
            ("file_accesses", record.file_accesses),
        )
    }
    return record.model_copy(update=update)


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _short(value) for name, value in values.items()}


def _short(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.7g}")
        case dict():
            return _rounded(value)
        case list() | tuple():
            return tuple(map(_short, value))
        case _:
            return value


def _no_waits(record: Record) -> Record:
    """They are in the trial's series, too."""
    if not any(row.waits_s for row in record.file_accesses):
        return record
    return _with_accesses(record, "waits_s", lambda _: {"waits_s": ()})


def _one_rank(record: Record) -> Record:
    """The one that works longest is what is judged."""
    if not any(len(row.parts_of_ranks) > 1 for row in record.file_accesses):
        return record
    return _with_accesses(
        record, "parts_of_ranks", lambda row: {"parts_of_ranks": (row.busiest_parts_s,)}
    )


def _with_accesses(
    record: Record, name: str, change: Callable[[FileAccessRow], dict[str, Any]]
) -> Record:
    rows = tuple(row.model_copy(update=change(row)) for row in record.file_accesses)
    reason = f"left out: a record has at most {MAX_RECORD_BYTES} bytes"
    missing = {**record.missing, f"file_accesses.{name}": reason}
    return record.model_copy(update={"file_accesses": rows, "missing": missing})


def _half_of_accesses(record: Record) -> Record:
    """Every second one, of writes and of reads."""
    kept = record.file_accesses[::2]
    reason = f"cut to {len(kept)} rows: a record has at most {MAX_RECORD_BYTES} bytes"
    missing = {**record.missing, "file_accesses": reason}
    return record.model_copy(update={"file_accesses": kept, "missing": missing})


def _few_nodes(record: Record) -> Record:
    return _keep_rows(record, "nodes", 16)


def _keep_rows(record: Record, name: str, most: int) -> Record:
    """The first rows; `missing` says that there were more."""
    rows: tuple[StoredModel, ...] = getattr(record, name)
    if len(rows) <= most:
        return record
    reason = f"cut to {most} rows: a record has at most {MAX_RECORD_BYTES} bytes"
    update = {name: rows[:most], "missing": {**record.missing, name: reason}}
    return record.model_copy(update=update)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


_SHORTENINGS: tuple[Callable[[Record], Record], ...] = (
    _shorter_lines,
    _few_lines,
    _no_pairs,
    _few_findings,
    _short_error,
    _few_digits,
    _no_waits,
    _one_rank,
    _few_nodes,
)
