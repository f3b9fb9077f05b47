"""Is it said what a step waits for its batch, and is a storage blamed only where figures say so?"""

import pytest
from tests.report.sample_batches import batches, batches_run
from tests.report.sample_storages import WORKLOADS

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.messages.storage import CacheState
from broadgauge.results.model import RunSummary

COLD, WARM = batches("cold"), batches("warm")
RAW = WORKLOADS[:1]
"""Reads 1 GB/s."""


def judged(run: RunSummary, name: str = "batches-cache-cold") -> Verdict:
    (summary,) = [summary for summary in run.cases if summary.case.workload.name == name]
    return verdict(summary, run)


def test_most_of_a_wait_that_memory_takes_away_is_the_storages() -> None:
    told = judged(batches_run([COLD, WARM]))
    assert told.sentence == (
        "storage-bound: 100 samples of a rank take 5 s; with files in memory it is 25 % of that"
    )
    assert told.evidence[0] == "2 epochs of 1 GB; file system: ext4"
    assert told.evidence[-1] == "the same with files in memory: 1.25 s for 100 samples"


def test_a_wait_that_is_as_long_out_of_memory_is_the_hosts() -> None:
    told = judged(batches_run([COLD, WARM], waits_s={"cold": 0.11, "warm": 0.1}))
    assert told.bound is Bound.HOST


def test_what_is_read_out_of_memory_waits_for_no_storage() -> None:
    run = batches_run([COLD, WARM, *RAW])
    assert judged(run, "batches-cache-warm").bound is Bound.HOST
    told = judged(batches_run([COLD, *RAW], found={"cold": "warm"}))
    assert told.bound is Bound.HOST
    assert "files were in memory" in told.sentence


@pytest.mark.parametrize(
    ("wait_s", "bound", "share"),
    [(0.125, Bound.STORAGE, "80 %"), (0.19, Bound.STORAGE, "52 %"), (0.4, Bound.UNKNOWN, "25 %")],
)
def test_without_that_it_is_held_against_raw_files(wait_s: float, bound: Bound, share: str) -> None:
    """Of ten steps: an epoch reads 1 GB."""
    told = judged(batches_run([*RAW, COLD], waits_s={"cold": wait_s}))
    assert told.bound is bound
    assert f"it reads {share} of what raw files do there" in told.sentence


@pytest.mark.parametrize("state", ["cold", "unknown"])
def test_where_no_figure_says_it_nobody_knows(state: CacheState) -> None:
    told = judged(batches_run([COLD], found={"cold": state}))
    assert told.bound is Bound.UNKNOWN


def test_a_warm_epoch_that_is_not_proven_proves_nothing() -> None:
    run = batches_run([COLD, WARM], found={"cold": "cold", "warm": "unknown"})
    assert judged(run).bound is Bound.UNKNOWN


def test_a_step_that_computes_says_its_share() -> None:
    slow = batches_run([batches("cold", 0.3), batches("warm", 0.3)], {"cold": 0.1, "warm": 0.01})
    assert judged(slow).sentence == (
        "storage-bound: a step of 300 ms waits 100 ms for its batch (23 % of the time); with "
        "files in memory it is 10 % of that"
    )
    fed = batches_run([batches("cold", 0.3)], {"cold": 0.003})
    assert judged(fed).sentence == (
        "compute-bound: a step of 300 ms waits 3 ms for its batch (1 % of the time); loading "
        "keeps up"
    )
