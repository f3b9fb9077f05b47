"""What do the ranks' waits for their batches add up to? The rank that waits longest counts."""

import math
import statistics
from collections.abc import Sequence

from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.merging.rank_blocks import RankBlocks, same_of_all_ranks
from broadgauge.merging.storage import NOT_ENDED, of_access, put_device_share, put_times, with_rows
from broadgauge.messages.storage import FileAccess
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark
from broadgauge.specs.workloads.workload import BatchesWorkload

ONE_STEP = "no rank had more than one step in an epoch"


def merge_batches(
    case: Case, workload: BatchesWorkload, ranks: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    found = with_rows(case, ranks, marks)
    epochs = same_of_all_ranks([rank.of(FileAccess) for rank in ranks], case.world_size)
    put_times(
        found,
        "wait_per_100_samples_s",
        [max(_per_100_samples_s(rank, workload.sample_size) for rank in each) for each in epochs],
    )
    found.series["step_wait_s"] = tuple(
        (row.repetition, wait_s) for row in found.file_accesses for wait_s in row.waits_s
    )
    _put_waits(found, epochs)
    _put_rate(found)
    put_device_share(found, of_access(found, "read"))
    return found


def percentile_s(times_s: Sequence[float], percent: float) -> float:
    """The least of them that so many percent do not exceed (nearest rank); one is there."""
    return sorted(times_s)[max(0, math.ceil(len(times_s) * percent / 100) - 1)]


def _per_100_samples_s(epoch: FileAccess, sample_bytes: int) -> float:
    return 100 * (epoch.stall_s or 0.0) / (epoch.size_bytes / sample_bytes)


def _put_waits(found: MeasurementBuilder, epochs: Sequence[tuple[FileAccess, ...]]) -> None:
    """Of the steps after the first, which waits for the workers' start too."""
    later = [[rank.waits_s[1:] for rank in each if rank.waits_s[1:]] for each in epochs]
    complete = [each for each in later if each]
    why = ONE_STEP if epochs else NOT_ENDED
    means_s = [max(map(statistics.fmean, each)) for each in complete]
    found.put("batch_wait_s", statistics.fmean(means_s) if means_s else None, why)
    slow_s = [max(percentile_s(rank, 99) for rank in each) for each in complete]
    found.put("batch_wait_p99_s", statistics.fmean(slow_s) if slow_s else None, why)


def _put_rate(found: MeasurementBuilder) -> None:
    """What a rank computes is no part of the time."""
    rows = of_access(found, "read")
    times_s = [
        max(sum(parts_s.values()) - parts_s.get("compute", 0.0) for parts_s in row.parts_of_ranks)
        for row in rows
    ]
    mean_s = statistics.fmean(times_s) if times_s else None
    rate = rows[0].size_bytes / mean_s / 1e9 if mean_s else None
    found.put("read_gbyte_per_s", rate, NOT_ENDED)
