"""Is a throttled disk that was faster than its limit told, and no other?"""

import pytest
from tests.report.sample_storages import WORKLOADS, storage_run

from broadgauge.advise.findings.throttle_burst import faster_than_throttle
from broadgauge.specs.records.record import Finding
from broadgauge.specs.storages.storage import Storage


def found(read: str, write: str) -> list[Finding]:
    """The sample reads 1 GB in 1 s, and writes it in 2 s."""
    storage = Storage.model_validate(
        {"name": "slow", "path": "/mnt", "emulated": {"read": read, "write": write}}
    )
    (summary,) = storage_run([storage], workloads=WORKLOADS[:1]).cases
    return list(faster_than_throttle(summary.case, summary.good[0]))


def test_what_keeps_to_its_limits_is_no_finding() -> None:
    assert found("1 GB/s", "500 MB/s") == []


@pytest.mark.parametrize(
    ("read", "write", "access"), [("500 MB/s", "1 GB/s", "read"), ("2 GB/s", "100 MB/s", "write")]
)
def test_what_is_faster_is_one(read: str, write: str, access: str) -> None:
    (told,) = found(read, write)
    assert told.rule == "faster-than-throttle"
    assert f"{access}s passed the throttled disk faster" in told.symptom
    assert told.fix is not None


def test_a_disk_that_is_not_throttled_has_no_limit() -> None:
    (summary,) = storage_run([Storage(name="disk", path="/mnt")], workloads=WORKLOADS[:1]).cases
    assert list(faster_than_throttle(summary.case, summary.good[0])) == []
