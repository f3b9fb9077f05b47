"""A run of batches from one storage, made up, beside other workloads if asked."""

from collections.abc import Mapping, Sequence

from tests.report.sample_storages import STORAGES, storage_run

from broadgauge.messages.storage import CacheState
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import Record
from broadgauge.specs.workloads.workload import BatchesWorkload, Workload

STEPS = 10
SIZE_BYTES = 10**9
WAITS_S = {"cold": 0.4, "warm": 0.1}
"""Of each step, by what an epoch was to find in memory."""
FOUND: dict[str, CacheState] = {"cold": "cold", "warm": "warm"}
"""What it did find."""


def batches(cache: str, step_time_s: float = 0.0) -> BatchesWorkload:
    asked = {"kind": "storage", "phase": "batches", "name": f"batches-cache-{cache}"}
    return BatchesWorkload.model_validate(asked | {"cache": cache, "step_time_s": step_time_s})


def batches_run(
    workloads: Sequence[Workload],
    waits_s: Mapping[str, float] = WAITS_S,
    found: Mapping[str, CacheState] = FOUND,
) -> RunSummary:
    """Each workload on one disk, in two launches."""
    run = storage_run(STORAGES[:1], workloads=workloads)
    by_key = {case.key: case.workload for case in run.plan.cases}
    records = [_with_epoch(each, by_key[each.case_key], waits_s, found) for each in run.records]
    return summarise_run(
        folder=run.folder, plan=run.plan, records=records, experiment_yaml="", environments={}
    )


def _with_epoch(
    record: Record,
    workload: Workload,
    waits_s: Mapping[str, float],
    found: Mapping[str, CacheState],
) -> Record:
    if not isinstance(workload, BatchesWorkload):
        return record
    wait_s = waits_s[workload.cache]
    row = epoch(wait_s, workload.step_time_s, found[workload.cache])
    metrics = {
        "wait_per_100_samples_s": wait_s * 100 / workload.batch_per_rank,
        "batch_wait_s": wait_s,
        "batch_wait_p99_s": 2 * wait_s,
        "read_gbyte_per_s": SIZE_BYTES / 1e9 / (STEPS * wait_s),
    }
    return record.model_copy(update={"metrics": metrics, "file_accesses": (row,)})


def epoch(wait_s: float, step_time_s: float, cache: CacheState) -> FileAccessRow:
    parts_s = {
        "start": wait_s,
        "compute": STEPS * step_time_s,
        "wait": (STEPS - 1) * wait_s,
        "end": 0.0,
    }
    return FileAccessRow(
        access="read",
        repetition=0,
        size_bytes=SIZE_BYTES,
        time_s=sum(parts_s.values()),
        slowest_rank=0,
        parts_s=parts_s,
        parts_of_ranks=(parts_s,),
        operations=None,
        stall_s=STEPS * wait_s,
        waits_s=(wait_s,) * STEPS,
        device_bytes=SIZE_BYTES if cache == "cold" else 0,
        cache=cache,
        evidence="from the device: counted",
        file_system="ext4",
    )
