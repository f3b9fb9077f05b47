"""Is a file system that compresses told, and none that nothing is known of?"""

import pytest
from tests.advise.test_trial_findings import a_record

from broadgauge.advise.limits import HELD_LEAST
from broadgauge.advise.trial_findings import findings
from broadgauge.messages.storage import BatchSource
from broadgauge.specs.case import Case
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import Finding, Severity
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import AnyPhase, BatchesWorkload, RawFilesWorkload

RAW = RawFilesWorkload(kind="storage", cache="cold")


def batches(source: BatchSource) -> BatchesWorkload:
    return BatchesWorkload(kind="storage", phase="batches", source=source)


def found(*held: float | None, workload: AnyPhase = RAW) -> tuple[Finding, ...]:
    case = Case(
        workload=workload,
        network=None,
        nodes=1,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
        storage=Storage(name="disk", path="/mnt"),
    )
    rows = tuple(
        FileAccessRow(
            access="read",
            repetition=number,
            size_bytes=100,
            time_s=1.0,
            slowest_rank=0,
            parts_s={"read": 1.0},
            operations=1,
            cache="cold",
            file_system="btrfs",
            held_ratio=ratio,
        )
        for number, ratio in enumerate(held)
    )
    return findings(case, a_record(file_accesses=rows))


def test_what_is_held_whole_or_not_known_is_no_finding() -> None:
    assert not found(1.0, HELD_LEAST, None)
    assert not found(None)


def test_the_least_that_is_held_is_told() -> None:
    (told,) = found(1.0, 0.5, 0.78)
    assert (told.rule, told.severity) == ("compressing-file-system", Severity.WARNING)
    assert told.symptom.endswith("of which the device moves 0.50 at most")
    assert told.evidence == (
        "btrfs holds 0.50 of the files' bytes, by the places of their extents",
    )
    assert told.cause is None
    assert "source" not in str(told.fix)


@pytest.mark.parametrize("source", ["jsonl", "files"])
def test_text_alone_is_said_to_be_text(source: BatchSource) -> None:
    (told,) = found(0.78, workload=batches(source))
    is_text = source == "jsonl"
    assert ("base64" in str(told.cause)) == is_text
    assert ("`source: files`" in str(told.fix)) == is_text
