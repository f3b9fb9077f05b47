"""What does a checkpoint wait for most, and how much of what the storage can do does it reach?"""

import statistics

from broadgauge.advise.verdicts.storage_verdict import longest_part
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.units import show_bandwidth, show_size, show_time

OF_STORAGE = frozenset(("write", "fsync", "fsync folder"))
"""Parts in which the kernel or the device is at work; in the others it waits."""


def verdict_of_checkpoint(summary: CaseSummary, run: RunSummary) -> Verdict:
    """At least one trial succeeded."""
    rows = [row for record in summary.good for row in record.file_accesses]
    part, share = longest_part(rows)
    stall_s = statistics.median(row.stall_s or 0.0 for row in rows)
    durable_s = statistics.median(row.time_s for row in rows)
    words = [
        f"training waits {show_time(stall_s)} of the {show_time(durable_s)} until a checkpoint is "
        "durable",
        f"{part} is {share * 100:.0f} % of that",
    ]
    rate, raw = summary.value("write_gbyte_per_s"), raw_write_gbyte_per_s(summary, run)
    evidence = [_evidence(rows), f"file system: {' and '.join(_file_systems(rows))}"]
    if rate is not None and raw is not None:
        words.append(f"it reaches {rate / raw * 100:.0f} % of what raw files do there")
        evidence.append(
            f"{show_bandwidth(rate)} until durable; raw files of as many ranks "
            f"{show_bandwidth(raw)}"
        )
    return verdict_that(_bound(summary, part), "; ".join(words), tuple(evidence))


def raw_write_gbyte_per_s(summary: CaseSummary, run: RunSummary) -> float | None:
    """The best that raw files reach through the cache on the same storage with the same shape;
    None: not measured."""
    case = summary.case
    rates = [
        rate
        for each in run.cases
        if each.case.workload.asked_cache is not None
        and each.case.storage == case.storage
        and each.case.platform == case.platform
        and each.case.shape == case.shape
        and (rate := each.value("write_gbyte_per_s")) is not None
    ]
    return max(rates, default=None)


def _bound(summary: CaseSummary, part: str) -> Bound:
    if part in OF_STORAGE:
        return Bound.STORAGE
    return Bound.NETWORK if part == "gather" and summary.case.nodes > 1 else Bound.HOST


def _evidence(rows: list[FileAccessRow]) -> str:
    size = show_size(rows[0].size_bytes)
    return f"{len(rows)} saves of {size}, parts of the rank that works longest"


def _file_systems(rows: list[FileAccessRow]) -> list[str]:
    return sorted({row.file_system or "unknown" for row in rows})
