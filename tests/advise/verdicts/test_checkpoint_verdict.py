"""Is it said what a checkpoint waits for, and what share of the storage it reaches?"""

import pytest
from tests.report.sample_run import POD
from tests.report.sample_storages import SAVE, SAVE_PARTS_S, STORAGES, WORKLOADS, storage_run

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.verdicts.checkpoint_verdict import raw_write_gbyte_per_s
from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.results.model import RunSummary

DISK = STORAGES[:1]


def judged(run: RunSummary) -> Verdict:
    (summary,) = [summary for summary in run.cases if summary.case.workload == SAVE]
    return verdict(summary, run)


def test_both_figures_are_in_the_sentence() -> None:
    told = judged(storage_run(DISK, workloads=[SAVE]))
    assert told.sentence == (
        "host-bound: training waits 7 s of the 8 s until a checkpoint is durable; serialise is "
        "38 % of that"
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
        summary.case.storage.name: raw_write_gbyte_per_s(summary, run)
        for summary in run.cases
        if summary.case.workload == SAVE and summary.case.storage is not None
    }
    assert shares == {"disk": pytest.approx(1.5, rel=0.01), "memory": pytest.approx(2, rel=0.01)}


@pytest.mark.parametrize(
    ("part", "nodes", "bound"),
    [
        ("write", 1, Bound.STORAGE),
        ("fsync", 2, Bound.STORAGE),
        ("serialise", 2, Bound.HOST),
        ("gather", 1, Bound.HOST),
        ("gather", 2, Bound.NETWORK),
    ],
)
def test_the_longest_part_says_what_it_waits_for(part: str, nodes: int, bound: Bound) -> None:
    parts_s = SAVE_PARTS_S | {part: 20.0}
    network = POD if nodes == 2 else None
    run = storage_run(DISK, network, workloads=[SAVE], save_parts_s=parts_s)
    assert judged(run).bound is bound
