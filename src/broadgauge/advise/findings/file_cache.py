"""Did a storage's reads find in memory what they were asked to?"""

from collections.abc import Iterator

from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Finding, Record, Severity

_FIX = {
    "cold": "end what else has the file mapped or open, or another `path`: a file system in memory "
    "(tmpfs) has no cold reads",
    "warm": "fewer or smaller files: they must fit into memory",
}


def other_cache_than_asked(case: Case, record: Record) -> Iterator[Finding]:
    """A warm read that is sold as a cold one says nothing of the storage."""
    asked = case.workload.asked_cache
    if asked is None:
        return
    reads = [row for row in record.file_accesses if row.access == "read"]
    other = [row for row in reads if row.cache != asked]
    if not other:
        return
    is_unknown = all(row.cache == "unknown" for row in other)
    first = next(row for row in other if is_unknown or row.cache != "unknown")
    what = "is unknown" if is_unknown else f"was {first.cache}"
    yield Finding(
        rule="cache-unknown" if is_unknown else "other-cache",
        severity=Severity.INFO if is_unknown else Severity.WARNING,
        symptom=f"`cache: {asked}` was asked for, and what {len(other)} of {len(reads)} "
        f"reads found in memory {what}",
        evidence=(first.evidence,),
        fix=None if is_unknown else _FIX[asked],
    )
