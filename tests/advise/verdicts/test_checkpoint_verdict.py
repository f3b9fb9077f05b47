"""Is it said what a checkpoint waits for, and what share of the storage it reaches?"""

import pytest
from tests.report.sample_run import POD
from tests.report.sample_storages import SAVE, SAVE_PARTS_S, STORAGES, WORKLOADS, storage_run

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.verdicts.raw_rates import raw_gbyte_per_s
from broadgauge.advise.verdicts.time_shares import largest_share
from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.report.kinds.registry import in_report
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.records.file_access_row import FileAccessRow

DISK = STORAGES[:1]


def judged(run: RunSummary) -> Verdict:
    (summary,) = [summary for summary in run.cases if summary.case.workload == SAVE]
    return verdict(summary, run)


def test_both_figures_are_in_the_sentence() -> None:
    told = judged(storage_run(DISK, workloads=[SAVE]))
    assert told.sentence == (
        "storage-bound: training waits 7 s of the 8 s until a checkpoint is durable; the storage "
        "works 56 % of that, most in write (25 %)"
    )


def test_it_is_held_against_the_best_of_raw_files_there() -> None:
    """Of the two, the second writes 1 GB/s, and a save 1 GB in 8 s."""
    run = storage_run(DISK, workloads=[*WORKLOADS, SAVE])
    told = judged(run)
    assert "it reaches 12 % of what raw files do there" in told.sentence
    assert "125 MB/s until durable" in told.evidence[-1]


def test_each_storage_has_raw_files_of_its_own() -> None:
    run = storage_run(workloads=[*WORKLOADS, SAVE])
    shares = {
        summary.case.storage.name: raw_gbyte_per_s(summary, run, "write")
        for summary in run.cases
        if summary.case.workload == SAVE and summary.case.storage is not None
    }
    assert shares == {"disk": pytest.approx(1.5, rel=0.01), "memory": pytest.approx(2, rel=0.01)}


@pytest.mark.parametrize(
    ("part", "nodes", "bound"),
    [
        ("write", 1, Bound.STORAGE),
        ("fsync", 2, Bound.STORAGE),
        ("save_file", 1, Bound.STORAGE),
        ("serialise", 2, Bound.HOST),
        ("hand over", 2, Bound.HOST),
        ("gather", 1, Bound.HOST),
        ("gather", 2, Bound.NETWORK),
    ],
)
def test_the_largest_share_says_what_it_waits_for(part: str, nodes: int, bound: Bound) -> None:
    parts_s = SAVE_PARTS_S | {part: 20.0}
    network = POD if nodes == 2 else None
    run = storage_run(DISK, network, workloads=[SAVE], save_parts_s=parts_s)
    assert judged(run).bound is bound


def test_parts_of_one_worker_count_together() -> None:
    """Serialising is the longest part, and yet the storage works longer."""
    share = largest_share(storage_run(DISK, workloads=[SAVE]).cases[0].good[0].file_accesses, 2)
    assert (share.worker, share.longest_part) == ("the storage", "write")
    assert share.time_ratio == pytest.approx(4.5 / 8)


def test_what_is_read_out_of_memory_is_no_work_of_the_storage() -> None:
    rows = storage_run(DISK).cases[0].good[0].file_accesses
    reads = [replace_parts(row, {"read": 3.0, "copy": 1.0}) for row in rows if row.access == "read"]
    assert largest_share(reads, 2).worker == "the storage"
    assert largest_share(reads, 2, is_in_memory=True).worker == "the host"


def replace_parts(row: FileAccessRow, parts_s: dict[str, float]) -> FileAccessRow:
    changed: FileAccessRow = row.model_copy(update={"parts_s": parts_s})
    return changed


def test_its_times_are_those_of_the_closing_table() -> None:
    """Two launches, whose saves differ: one figure for each, wherever it stands."""
    run = storage_run(DISK, workloads=[SAVE])
    (summary,) = run.cases
    first, second = summary.records
    slower = second.model_copy(update={"metrics": second.metrics | {"save_stall_s": 70.0}})
    run = summarise_run(
        folder=run.folder,
        plan=run.plan,
        records=[first, slower],
        experiment_yaml="",
        environments={},
    )
    (summary,) = run.cases
    cell = in_report(SAVE).figure(summary)
    assert cell is not None
    assert f"training waits {cell.main} of the" in judged(run).sentence
