"""Which trials of a run failed, and why? What their records say themselves, by reason."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broadgauge.specs.records.record import Finding, Record, Severity, Status

RULE = "trials-failed"
_FAILED = {Status.FAILED: "failed", Status.TIMEOUT: "timed out"}
_MOST_LINES = 8
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
_LAUNCH = re.compile(r"\bb\d+\.l\d+(?:r\d+)?\b")
_LAUNCH_AHEAD = re.compile(rf"^{_LAUNCH.pattern}: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrials:
    """Those that failed for one reason."""

    finding: Finding
    records: tuple[Record, ...]


def failed_trials(records: Iterable[Record]) -> Iterator[FailedTrials]:
    """Those that differ in nothing but numbers and names of launches together.

    Left out are those whose own findings say already what the error says.
    """
    groups: dict[tuple[Status, str], list[Record]] = {}
    for record in records:
        if record.status in _FAILED and not _is_told(record):
            groups.setdefault((record.status, without_numbers(_reason(record))), []).append(record)
    for (status, _), group in groups.items():
        finding = Finding(
            rule=RULE,
            severity=Severity.ERROR,
            symptom=f"trials {_FAILED[status]}: {_reason(group[0])}",
            evidence=_lines(group),
        )
        yield FailedTrials(finding=finding, records=tuple(group))


def without_numbers(text: str) -> str:
    """Equal for texts in which nothing but numbers differs."""
    return _NUMBER.sub("#", text)


def _is_told(record: Record) -> bool:
    message = "" if record.error is None else record.error.message
    return any(
        finding.severity is Severity.ERROR and finding.symptom in message
        for finding in record.findings
    )


def _reason(record: Record) -> str:
    """Its first line, without the name of its launch."""
    first = "" if record.error is None else record.error.message.partition("\n")[0].strip()
    return _LAUNCH.sub("the launch", _LAUNCH_AHEAD.sub("", first)) or "the reason is unknown"


def _lines(group: Iterable[Record]) -> tuple[str, ...]:
    """Whom each message names, each once, with the first trial that has it."""
    firsts: dict[str, str] = {}
    for record in group:
        firsts.setdefault(_words(record), record.record_id)
    lines = [f"{trial}: {words}" for words, trial in firsts.items()]
    left = len(lines) - _MOST_LINES
    return tuple(lines if left <= 0 else (*lines[:_MOST_LINES], f"and {left} more like these"))


def _words(record: Record) -> str:
    """`rank 3: train.py:42 in step: it ended with exit code 1`."""
    error, reason = record.error, _reason(record)
    if error is None:
        return reason
    rank = None if error.rank is None else f"rank {error.rank}"
    parts = [each for each in (rank, error.frame) if each is not None and each not in reason]
    return ": ".join((*parts, reason))
