"""How long does a step wait for its batch, and is it the storage that it waits for?"""

import statistics
from typing import Any

from broadgauge.advise.limits import STALL_SHARE, STORAGE_SHARE
from broadgauge.advise.verdicts.raw_rates import place_of, raw_gbyte_per_s
from broadgauge.advise.verdicts.time_shares import file_systems, times_not_kept
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.case import Case
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.units import show_bandwidth, show_size, show_time
from broadgauge.specs.workloads.workload import BatchesWorkload


def verdict_of_batches(summary: CaseSummary, workload: BatchesWorkload, run: RunSummary) -> Verdict:
    """At least one trial succeeded."""
    wait_s = summary.value("wait_per_100_samples_s")
    if wait_s is None:
        return times_not_kept(summary)
    rows = [row for record in summary.good for row in record.file_accesses]
    words = [f"100 samples of a rank take {show_time(wait_s)}"]
    share = _stall_share(rows)
    step_wait_s = summary.value("batch_wait_s")
    if workload.step_time_s and step_wait_s is not None:
        words = [
            f"a step of {show_time(workload.step_time_s)} waits {show_time(step_wait_s)} for its "
            f"batch ({share * 100:.0f} % of the time)"
        ]
    evidence = [_epochs(rows), *_waits(summary, rows), f"an epoch: {rows[0].evidence}"]
    if workload.step_time_s and share < STALL_SHARE:
        words.append("loading keeps up")
        return verdict_that(Bound.COMPUTE, "; ".join(words), tuple(evidence))
    bound, why, figures = _waited_for(summary, run, rows)
    return verdict_that(bound, "; ".join([*words, why]), (*evidence, *figures))


def _waited_for(
    summary: CaseSummary, run: RunSummary, rows: list[FileAccessRow]
) -> tuple[Bound, str, tuple[str, ...]]:
    """Which side is the limit, in words, and the figures that say so."""
    states = {row.cache for row in rows}
    if states == {"warm"}:
        return Bound.HOST, "files were in memory: this is not waiting for the storage", ()
    if states != {"cold"}:
        return Bound.UNKNOWN, "nobody knows whether the files were in memory", ()
    return _beside_memory(summary, run) or _beside_raw_files(summary, run, rows)


def _beside_memory(
    summary: CaseSummary, run: RunSummary
) -> tuple[Bound, str, tuple[str, ...]] | None:
    """None: the same was not measured with files in memory."""
    wait_s, warm_s = summary.value("wait_per_100_samples_s"), warm_wait_s(summary, run)
    if not wait_s or warm_s is None:
        return None
    figures = (f"the same with files in memory: {show_time(warm_s)} for 100 samples",)
    why = f"with files in memory it is {warm_s / wait_s * 100:.0f} % of that"
    is_storage = 1 - warm_s / wait_s >= STORAGE_SHARE
    return (Bound.STORAGE if is_storage else Bound.HOST), why, figures


def _beside_raw_files(
    summary: CaseSummary, run: RunSummary, rows: list[FileAccessRow]
) -> tuple[Bound, str, tuple[str, ...]]:
    rate, raw = _rate_gbyte_per_s(rows), raw_gbyte_per_s(summary, run, "read", "cold")
    if rate is None or raw is None:
        why = "`cache: [cold, warm]` or a workload `raw` would tell whether that is the storage"
        return Bound.UNKNOWN, why, ()
    figures = (f"{show_bandwidth(rate)} of files; raw files {show_bandwidth(raw)}",)
    why = f"it reads {rate / raw * 100:.0f} % of what raw files do there"
    if rate >= STORAGE_SHARE * raw:
        return Bound.STORAGE, why, figures
    why += ": requests or cores are the limit, and `cache: [cold, warm]` would tell which"
    return Bound.UNKNOWN, why, figures


def warm_wait_s(summary: CaseSummary, run: RunSummary) -> float | None:
    """For 100 samples, of the same batches with files in memory; None: not measured, or not
    proven."""
    for other in run.cases:
        if _is_same(other.case, summary.case) and other.case.workload.asked_cache == "warm":
            rows = [row for record in other.good for row in record.file_accesses]
            if rows and all(row.cache == "warm" for row in rows):
                return other.value("wait_per_100_samples_s")
    return None


def _is_same(one: Case, other: Case) -> bool:
    """But for what is in memory."""
    is_there = one.network == other.network and place_of(one) == place_of(other)
    return is_there and _asked(one) == _asked(other)


def _asked(case: Case) -> dict[str, Any]:
    return case.workload.model_dump(exclude={"name", "cache"})


def _rate_gbyte_per_s(rows: list[FileAccessRow]) -> float | None:
    """Of the files' bytes: what devices gave where it is counted, else of the payload. Over
    all of an epoch, since workers read while a rank computes."""
    rates = [
        max(row.size_bytes, row.device_bytes or 0) / row.time_s / 1e9 for row in rows if row.time_s
    ]
    return statistics.median(rates) if rates else None


def _stall_share(rows: list[FileAccessRow]) -> float:
    """Of the time after the first batch, of the slowest rank."""
    wait_s, compute_s = (
        sum(row.parts_s.get(part, 0.0) for row in rows) for part in ("wait", "compute")
    )
    return wait_s / (wait_s + compute_s) if wait_s else 0.0


def _epochs(rows: list[FileAccessRow]) -> str:
    return f"{len(rows)} epochs of {show_size(rows[0].size_bytes)}; {file_systems(rows)}"


def _waits(summary: CaseSummary, rows: list[FileAccessRow]) -> list[str]:
    start_s = statistics.median(row.parts_s["start"] for row in rows)
    first = f"until the first batch of an epoch is there: {show_time(start_s)}"
    mean_s, slow_s = summary.value("batch_wait_s"), summary.value("batch_wait_p99_s")
    if mean_s is None or slow_s is None:
        return [first]
    return [
        first,
        f"after the first, a step waits {show_time(mean_s)} (mean), {show_time(slow_s)} (p99)",
    ]
