"""Is it said what the loading of a model waits for, and that it came from the storage at all?"""

from tests.report.sample_storages import LOAD, STORAGES, WORKLOADS, storage_run

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run

DISK = STORAGES[:1]


def judged(run: RunSummary) -> Verdict:
    (summary,) = [summary for summary in run.cases if summary.case.workload == LOAD]
    return verdict(summary, run)


def test_its_time_its_cache_and_who_works_are_in_the_sentence() -> None:
    told = judged(storage_run(DISK, workloads=[LOAD]))
    assert told.sentence == (
        "storage-bound: a training waits 4 s for its model, whose files were cold; the storage "
        "works 62 % of that, most in read (50 %)"
    )
    assert told.evidence[-1] == "a load: from the device: 1.00 of the bytes"


def test_a_cold_load_is_held_against_cold_reads_alone() -> None:
    """Of raw files the first, whose reads were to be cold, reads 1 GB/s, the second 2."""
    told = judged(storage_run(DISK, workloads=[*WORKLOADS, LOAD]))
    assert "it reaches 25 % of what raw files do there" in told.sentence
    assert "raw files of as many ranks 1" in told.evidence[-1]


def test_a_model_that_was_in_memory_waits_for_no_storage() -> None:
    run = storage_run(DISK, workloads=[LOAD])
    (summary,) = run.cases
    warm = [
        record.model_copy(
            update={
                "file_accesses": tuple(
                    row.model_copy(update={"cache": "warm"}) for row in record.file_accesses
                )
            }
        )
        for record in summary.records
    ]
    told = judged(
        summarise_run(
            folder=run.folder, plan=run.plan, records=warm, experiment_yaml="", environments={}
        )
    )
    assert told.bound is Bound.HOST
    assert "whose files were warm" in told.sentence
