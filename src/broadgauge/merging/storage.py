"""What do the ranks' repetitions of a phase on a storage add up to? The slowest rank counts."""

import statistics
from collections.abc import Sequence

from broadgauge.merging.counters import intervals_by_label
from broadgauge.merging.metrics import MeasurementBuilder, put_cores
from broadgauge.merging.rank_blocks import RankBlocks, same_of_all_ranks
from broadgauge.messages.storage import Access, CacheState, FileAccess
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark
from broadgauge.specs.records.file_access_row import FileAccessRow

NOT_ENDED = "no repetition was finished by all ranks"


def merge_raw_files(
    case: Case, ranks: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    found = with_rows(case, ranks, marks)
    writes, reads = of_access(found, "write"), of_access(found, "read")
    put_times(found, "write_time_s", [row.time_s for row in writes])
    _put_rate(found, "write_gbyte_per_s", writes)
    put_times(found, "read_time_s", [row.time_s for row in reads])
    _put_reads(found, reads)
    return found


def merge_checkpoint(
    case: Case, ranks: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    found = with_rows(case, ranks, marks)
    saves = of_access(found, "write")
    put_times(found, "save_durable_s", [row.time_s for row in saves])
    put_times(found, "save_stall_s", [row.stall_s for row in saves if row.stall_s is not None])
    _put_rate(found, "write_gbyte_per_s", saves)
    return found


def merge_model_load(
    case: Case, ranks: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    found = with_rows(case, ranks, marks)
    loads = of_access(found, "read")
    put_times(found, "model_load_s", [row.time_s for row in loads])
    _put_reads(found, loads)
    return found


def of_access(found: MeasurementBuilder, access: Access) -> list[FileAccessRow]:
    return [row for row in found.file_accesses if row.access == access]


def with_rows(case: Case, ranks: Sequence[RankBlocks], marks: Sequence[Mark]) -> MeasurementBuilder:
    """What every phase has: its repetitions, and the cores that were busy meanwhile."""
    found = MeasurementBuilder()
    same = same_of_all_ranks([rank.of(FileAccess) for rank in ranks], case.world_size)
    found.file_accesses = tuple(map(_row, same))
    intervals = intervals_by_label(marks)
    put_cores(found, [intervals[each[0].label] for each in same if each[0].label in intervals])
    return found


def _put_reads(found: MeasurementBuilder, reads: Sequence[FileAccessRow]) -> None:
    """Their rate, and where they came from."""
    _put_rate(found, "read_gbyte_per_s", reads)
    put_device_share(found, reads)


def put_device_share(found: MeasurementBuilder, reads: Sequence[FileAccessRow]) -> None:
    counted = [row.device_bytes / row.size_bytes for row in reads if row.device_bytes is not None]
    is_counted = bool(counted) and len(counted) == len(reads)
    found.put(
        "device_read_ratio",
        statistics.fmean(counted) if is_counted else None,
        "the kernel does not say what was read from devices" if reads else NOT_ENDED,
    )


def put_times(found: MeasurementBuilder, metric: str, times_s: Sequence[float]) -> None:
    """Their mean, and each of them."""
    found.series[metric] = tuple(times_s)
    found.put(metric, statistics.fmean(times_s) if times_s else None, NOT_ENDED)


def _put_rate(found: MeasurementBuilder, metric: str, rows: Sequence[FileAccessRow]) -> None:
    mean_s = statistics.fmean(row.time_s for row in rows) if rows else None
    found.put(metric, rows[0].size_bytes / mean_s / 1e9 if mean_s else None, NOT_ENDED)


def _row(same: tuple[FileAccess, ...]) -> FileAccessRow:
    """One repetition of all ranks, in their order."""
    rank = max(range(len(same)), key=lambda number: same[number].seconds)
    slowest = same[rank]
    stalls_s = [each.stall_s for each in same if each.stall_s is not None]
    told = [each for each in (slowest, *same) if each.cache is not None]
    states = {each.cache for each in told}
    state: CacheState | None = "unknown" if len(states) > 1 else next(iter(states), None)
    return FileAccessRow(
        access=slowest.access,
        repetition=int(slowest.label.rpartition("/")[2]),
        size_bytes=sum(each.size_bytes for each in same),
        time_s=slowest.seconds,
        slowest_rank=rank,
        parts_s=slowest.parts_s,
        stall_s=max(stalls_s, default=None),
        waits_s=slowest.waits_s,
        parts_of_ranks=tuple(each.parts_s for each in same) if stalls_s else (),
        operations=_sum_of([each.operations_count for each in same]),
        device_bytes=_sum_of([each.device_bytes for each in same]),
        cached_before_bytes=_sum_of([each.cached_before_bytes for each in same]),
        cache=state,
        evidence=told[0].evidence if told else "",
        file_system=slowest.file_system,
        held_ratio=_mean_of([each.held_ratio for each in same]),
    )


def _mean_of(ratios: Sequence[float | None]) -> float | None:
    """None where one rank's is unknown."""
    known = [ratio for ratio in ratios if ratio is not None]
    return statistics.fmean(known) if len(known) == len(ratios) else None


def _sum_of(counts: Sequence[int | None]) -> int | None:
    """None where one rank's is unknown: a sum of the others would be too small."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
