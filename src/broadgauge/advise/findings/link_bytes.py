"""Did more bytes cross the link than had to, did they fill it, and did they come out right?"""

from collections.abc import Iterator

from broadgauge.advise.limits import AMPLIFICATION, LARGE_MESSAGE_BYTES, LINE_SHARE
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Finding, Record, Severity
from broadgauge.specs.units import show_ratio, show_size


def amplification_by_op(case: Case, record: Record) -> Iterator[Finding]:
    """Of collectives: one finding an op, of its largest message."""
    shares: dict[str, float] = {}
    for row in sorted(record.collectives, key=lambda row: row.size_bytes):
        if row.amplification_ratio is not None and row.size_bytes >= LARGE_MESSAGE_BYTES:
            shares[row.op] = row.amplification_ratio
    for op, share in shares.items():
        yield from _amplified(case, op, share)


def amplification_of_step(case: Case, record: Record) -> Iterator[Finding]:
    """Of a job: by the metric of its step."""
    yield from _amplified(case, "a step", record.metrics.get("amplification_ratio"))


def _amplified(case: Case, what: str, share: float | None) -> Iterator[Finding]:
    if share is not None and share > AMPLIFICATION:
        yield Finding(
            rule="amplification",
            severity=Severity.INFO,
            symptom=f"{what} sends more than the ring algorithm would",
            evidence=(f"{share:.2f} times the ring's bytes on the wire",),
            cause=f"how {case.backend} does it at {case.world_size} ranks",
        )


def link_not_filled(_case: Case, record: Record) -> Iterator[Finding]:
    share = record.metrics.get("line_share_ratio")
    sizes = [row.size_bytes for row in record.collectives]
    if share is None or not sizes or max(sizes) < LARGE_MESSAGE_BYTES or share >= LINE_SHARE:
        return
    yield Finding(
        rule="link-not-filled",
        severity=Severity.INFO,
        symptom=f"the largest collective fills {show_ratio(share)} of the line",
        evidence=(f"message of {show_size(max(sizes))}, by the link's counters",),
        cause="latency, the library's settings, or the host",
    )


def wrong_result(_case: Case, record: Record) -> Iterator[Finding]:
    wrong = [row for row in record.collectives if row.is_correct is False]
    for row in wrong:
        yield Finding(
            rule="wrong-result",
            severity=Severity.ERROR,
            symptom=f"{row.op} of {row.dtype} gave a wrong result at {show_size(row.size_bytes)}",
            cause="its time is of no use",
        )
