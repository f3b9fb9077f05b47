"""Did trials of two cases that are compared fail, and whose?

Figures are of trials that succeeded. Where one side fails now and then, those left over are
chosen by what failed: the slow ones that ran into a limit, say.
"""

from collections import Counter
from dataclasses import dataclass

from broadgauge.results.comparing.blocks import ValueOf
from broadgauge.results.model import CaseSummary
from broadgauge.specs.records.record import Record, Status

_WORDS = {
    Status.OK: "without the figure",
    Status.FAILED: "failed",
    Status.TIMEOUT: "timed out",
    Status.SKIPPED: "skipped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failures:
    blocks: int
    """In which a trial failed, or gave no figure."""
    total: int
    words: str
    """`5 failed, 1 timed out`, of trials."""

    def told(self, name: str) -> str:
        if not self.blocks:
            return f"{name} in none"
        return f"{name} in {self.blocks} of {self.total} launches ({self.words})"


def failures_of(candidate: CaseSummary, baseline: CaseSummary, value_of: ValueOf) -> str:
    """`the candidate failed in 6 of 10 launches (6 failed), the baseline in none`; empty: none did.

    The side that failed comes first.
    """
    sides = [("the candidate", _of(candidate, value_of)), ("the baseline", _of(baseline, value_of))]
    if not any(side.blocks for _, side in sides):
        return ""
    (first, failing), (other, rest) = sorted(sides, key=lambda side: not side[1].blocks)
    return f"{failing.told(f'{first} failed')}, {rest.told(other)}"


def _of(summary: CaseSummary, value_of: ValueOf) -> _Failures:
    bad: list[Record] = [
        record
        for record in summary.records
        if record.status is not Status.OK or value_of(record) is None
    ]
    kinds = Counter(_WORDS[record.status] for record in bad)
    return _Failures(
        blocks=len({record.block for record in bad}),
        total=len({record.block for record in summary.records}),
        words=", ".join(f"{count} {word}" for word, count in kinds.items()),
    )
