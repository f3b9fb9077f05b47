"""What did a storage do in a trial that its figures alone don't say?"""

from collections.abc import Iterator

from broadgauge.advise.limits import DURABLE_LATER_RATIO, DURABLE_LATER_S
from broadgauge.specs.case import Case
from broadgauge.specs.record import Finding, Record, Severity
from broadgauge.specs.storage_rows import StorageRow
from broadgauge.specs.units import show_time


def phase_not_measured(_case: Case, record: Record) -> Iterator[Finding]:
    """One finding for each row with a problem; the others have their figures."""
    for row in record.storage:
        if row.problem:
            yield Finding(
                rule="storage-phase",
                severity=Severity.WARNING,
                symptom=f"{_words(row)} was not measured",
                evidence=(row.problem,),
            )


def cache_not_as_asked(_case: Case, record: Record) -> Iterator[Finding]:
    """A read that was to be cold, and was warm or nobody knows."""
    for row in record.storage:
        if row.problem or row.asked_cache != "cold" or row.cache in ("cold", None):
            continue
        is_warm = row.cache == "warm"
        yield Finding(
            rule="cache-not-cold",
            severity=Severity.WARNING if is_warm else Severity.INFO,
            symptom=f"{_words(row)} was to read from the storage, and "
            + ("memory answered" if is_warm else "whether it did can't be proven"),
            evidence=(row.cache_evidence,) if row.cache_evidence else (),
            cause="pages stayed in the cache, as those that are mapped or dirty do, or the file "
            "system keeps no other place"
            if is_warm
            else None,
            fix="no figure of a cold start: of a data set larger than memory it says nothing"
            if is_warm
            else None,
        )


def durable_after_return(_case: Case, record: Record) -> Iterator[Finding]:
    """Training goes on long before a lost node would lose nothing."""
    for row in record.storage:
        if row.durable_s is None or row.wait_s is None:
            continue
        if (
            row.durable_s > DURABLE_LATER_RATIO * row.wait_s
            and row.durable_s - row.wait_s > DURABLE_LATER_S
        ):
            yield Finding(
                rule="durable-later",
                severity=Severity.INFO,
                symptom=f"{_words(row)} held training for {show_time(row.wait_s)}, and was durable "
                f"after {show_time(row.durable_s)}",
                evidence=(row.durable_evidence,) if row.durable_evidence else (),
                cause="it is written or uploaded in the background",
                fix="a node that is lost before then has this save no more: keep the one before it",
            )


def _words(row: StorageRow) -> str:
    """`model loading (safetensors)`."""
    return f"{row.phase.replace('_', ' ')} ({row.variant})"
