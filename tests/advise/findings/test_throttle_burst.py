"""Is a throttled disk that was faster than its limit told, and no other?"""

import pytest
from tests.report.sample_storages import WORKLOADS, storage_run

from broadgauge.advise.findings.throttle_burst import faster_than_throttle
from broadgauge.specs.networks.network import Network
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
    assert f"1 of 1 {access}s were faster than the " in told.symptom
    assert told.symptom.endswith(" of the throttled disk")
    assert told.fix is not None


def test_each_node_has_a_disk_of_its_own() -> None:
    """Of two nodes, one GB in a second is 500 MB/s each."""
    storage = Storage.model_validate(
        {"name": "slow", "path": "/mnt", "emulated": {"read": "500 MB/s", "write": "200 MB/s"}}
    )
    (summary,) = storage_run([storage], Network(name="fast"), workloads=WORKLOADS[:1]).cases
    assert summary.case.nodes == 2
    (told,) = faster_than_throttle(summary.case, summary.good[0])
    assert "writes were faster than the 400 MB/s of 2 throttled disks, one a node" in told.symptom


def test_a_disk_that_is_not_throttled_has_no_limit() -> None:
    (summary,) = storage_run([Storage(name="disk", path="/mnt")], workloads=WORKLOADS[:1]).cases
    assert list(faster_than_throttle(summary.case, summary.good[0])) == []
