"""Who works most of the time that a phase takes: the storage, the host, or ranks with each other?

By the sums of their parts: the longest part alone may belong to one of them while the others
together take longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary
from broadgauge.specs.records.file_access_row import WAITING, FileAccessRow

OF_STORAGE = frozenset(("open", "read", "write", "save_file", "fsync", "close", "fsync folder"))
"""The kernel or the device works; of safetensors' `save_file` it does for 99 % of the time."""
BETWEEN_RANKS = WAITING | {"gather"}
"""Ranks send to each other, or wait for each other."""
STORAGE, RANKS, HOST = "the storage", "ranks with each other", "the host"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShare:
    """Of whom the phase waits for most."""

    worker: str
    time_ratio: float
    """Of the time of the rank that works longest, over all repetitions."""
    longest_part: str
    """Of that worker's."""
    longest_ratio: float

    @property
    def in_words(self) -> str:
        """`the storage works 56 % of that, most in fsync (33 %)`."""
        verb = "work" if self.worker == RANKS else "works"
        return (
            f"{self.worker} {verb} {self.time_ratio * 100:.0f} % of that, most in "
            f"{self.longest_part} ({self.longest_ratio * 100:.0f} %)"
        )

    def bound(self, nodes: int) -> Bound:
        """Ranks of one node have no network between them."""
        if self.worker == STORAGE:
            return Bound.STORAGE
        return Bound.NETWORK if self.worker == RANKS and nodes > 1 else Bound.HOST


def largest_share(
    rows: Sequence[FileAccessRow], world_size: int, *, is_in_memory: bool = False
) -> TimeShare:
    """`is_in_memory`: what was read came out of the host's memory, which no storage works for."""
    totals_s: dict[str, float] = {}
    for row in rows:
        for part, seconds in row.busiest_parts_s.items():
            totals_s[part] = totals_s.get(part, 0.0) + seconds
    by_worker: dict[str, dict[str, float]] = {}
    for part, seconds in totals_s.items():
        worker = _worker(part, is_alone=world_size == 1, is_in_memory=is_in_memory)
        by_worker.setdefault(worker, {})[part] = seconds
    all_s = sum(totals_s.values())
    worker = max(by_worker, key=lambda name: sum(by_worker[name].values()))
    parts_s = by_worker[worker]
    longest = max(parts_s, key=lambda part: parts_s[part])
    return TimeShare(
        worker=worker,
        time_ratio=sum(parts_s.values()) / all_s,
        longest_part=longest,
        longest_ratio=parts_s[longest] / all_s,
    )


def file_systems(rows: Sequence[FileAccessRow]) -> str:
    """`file system: ext4`, or all of them."""
    return "file system: " + " and ".join(sorted({row.file_system or "unknown" for row in rows}))


def times_not_kept(summary: CaseSummary) -> Verdict:
    """Of a record that did not hold its metrics."""
    return verdict_that(
        Bound.UNKNOWN, "its times were not kept", tuple(sorted(set(summary.missing.values())))
    )


def _worker(part: str, *, is_alone: bool, is_in_memory: bool) -> str:
    """One rank alone has no other: what it does is the host's work."""
    if part in BETWEEN_RANKS:
        return HOST if is_alone else RANKS
    return STORAGE if part in OF_STORAGE and not is_in_memory else HOST
