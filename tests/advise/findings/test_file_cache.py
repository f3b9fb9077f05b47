"""Is a warm read that is sold as a cold one told?"""

import pytest
from tests.advise.test_trial_findings import a_record

from broadgauge.advise.trial_findings import findings
from broadgauge.messages.storage import AskedCache, CacheState
from broadgauge.specs.case import Case
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import Record, Severity
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import RawFilesWorkload


def a_case(cache: AskedCache, **changes: object) -> Case:
    workload = RawFilesWorkload.model_validate({"kind": "storage", "cache": cache} | changes)
    return Case(
        workload=workload,
        network=None,
        nodes=1,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
        storage=Storage(name="disk", path="/mnt"),
    )


def reads(*states: CacheState) -> Record:
    rows = tuple(
        FileAccessRow(
            access="read",
            repetition=number,
            size_bytes=100,
            time_s=1.0,
            slowest_rank=0,
            parts_s={"read": 1.0},
            operations=1,
            cache=state,
            evidence=f"seen: {state}",
        )
        for number, state in enumerate(states)
    )
    return a_record(file_accesses=rows)


def test_what_was_asked_for_is_no_finding() -> None:
    assert not findings(a_case("cold"), reads("cold", "cold"))
    assert not findings(a_case("warm"), reads("warm"))


@pytest.mark.parametrize(("asked", "found"), [("cold", "warm"), ("warm", "cold")])
def test_another_cache_than_asked_is_a_warning(asked: AskedCache, found: CacheState) -> None:
    (told,) = findings(a_case(asked), reads(asked, found))
    assert (told.rule, told.severity) == ("other-cache", Severity.WARNING)
    assert told.symptom == (
        f"`cache: {asked}` was asked for, and what 1 of 2 reads found in memory was {found}"
    )
    assert told.evidence == (f"seen: {found}",)
    assert told.fix is not None


def test_what_nobody_can_prove_is_a_note() -> None:
    (told,) = findings(a_case("cold"), reads("unknown", "unknown"))
    assert (told.rule, told.severity) == ("cache-unknown", Severity.INFO)
    assert told.symptom.endswith("what 2 of 2 reads found in memory is unknown")


def test_what_is_past_the_cache_finds_nothing_in_it() -> None:
    assert not findings(a_case("cold", direct=True), reads("unknown"))
