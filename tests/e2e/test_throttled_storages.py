"""Holds that ranks of a run work on a throttled disk, and that nothing of it is left."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.e2e.driving import RANK, Background, only_run, records_of, run_command, wait_until
from tests.throttling import skip_unless_throttled

from broadgauge.messages.block_groups import PREFIX, block_hierarchy
from broadgauge.probes.storage.throttle import disk_of
from broadgauge.specs.plan import Plan
from broadgauge.specs.storages.storage import EmulatedDisk

SLOW = "{name: slow-disk, path: DISK, emulated: {read: 40 MB/s, write: 4 MB/s}}"
EXPERIMENT = """\
name: throttled
platform: PLATFORM
cluster: {shapes: [SHAPE], device: cpu}
networks: [{name: link, rate_gbps: 1 Gbit/s}]
storages:
  - STORAGE
  - {name: as-it-is, path: DISK, like: nebius-s3-mount}
workloads:
  - {kind: storage, phase: raw, name: raw, size: 4 MiB, cache: warm, repetitions: 2}
launches: 1
"""


def experiment(folder: Path, storage: str, disk: Path, *, is_emulated: bool = False) -> None:
    platform, shape = ("emulated", "2x1") if is_emulated else ("local", "1x2")
    text = EXPERIMENT.replace("PLATFORM", platform).replace("SHAPE", shape)
    (folder / "e.yaml").write_text(text.replace("STORAGE", storage).replace("DISK", str(disk)))


def groups_of(pids: list[int]) -> Iterator[Path]:
    """Those of ours that a process is in."""
    root = block_hierarchy()
    assert root is not None
    for pid in pids:
        with suppress(OSError):  # it has ended
            for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                if f"/{PREFIX}" in line:
                    yield root / line.split(":", 2)[2].lstrip("/")


def test_ranks_work_in_a_group_of_their_node_that_goes(tmp_path: Path, disk: Path) -> None:
    skip_unless_throttled(disk)
    experiment(tmp_path, SLOW, disk)
    with Background(("run", "e.yaml"), tmp_path) as tool:
        wait_until(lambda: len(set(groups_of(tool.pids(RANK)))) == 1)
        (group,) = set(groups_of(tool.pids(RANK)))
        rates = (group / "blkio.throttle.read_bps_device").read_text().split()
        code, output = tool.end()
    assert code == 0, output
    assert rates == [disk_of(disk), "40000000"]
    assert not group.exists()
    assert list(disk.iterdir()) == []
    run = only_run(tmp_path)
    records = records_of(run)
    assert [record["status"] for record in records] == ["ok", "ok"]
    words = "storage slow-disk: a disk throttled to 40 MB/s read, 4 MB/s write"
    assert words in output
    assert words in (run / "report.html").read_text()
    plan = Plan.model_validate(json.loads((run / "plan.json").read_text()))
    slow, plain = (case.storage for case in plan.cases)
    assert slow is not None
    assert slow.emulated == EmulatedDisk(read=40_000_000, write=4_000_000)
    assert plain is not None
    assert (plain.like, plain.emulated, plain.is_durable) == ("nebius-s3-mount", None, True)


def refused_alone(folder: Path, disk: Path) -> str:
    """The message of the one case that failed, which is the throttled storage's."""
    ran = run_command("run", "e.yaml", folder=folder)
    assert ran.returncode != 0
    assert list(disk.iterdir()) == []
    records = {record["network"]: record for record in records_of(only_run(folder))}
    (plain,) = (record for name, record in records.items() if "as-it-is" in name)
    (failed,) = (record for name, record in records.items() if "slow" in name)
    assert plain["status"] == "ok", plain["error"]
    assert failed["error"]["kind"] == "refused"
    message: str = failed["error"]["message"]
    assert message in ran.stdout + ran.stderr
    return message


def test_memory_that_is_to_be_throttled_is_refused_alone(tmp_path: Path, disk: Path) -> None:
    experiment(tmp_path, "{name: slow, path: /dev/shm, like: sata-ssd, emulated: true}", disk)
    message = refused_alone(tmp_path, disk)
    assert "storage `slow` can't be throttled: /dev/shm is on no block device" in message


@pytest.mark.namespaces
def test_each_emulated_node_has_a_throttled_disk_of_its_own(tmp_path: Path, disk: Path) -> None:
    """Its ranks have no capabilities: their cluster makes way for them, and takes it away."""
    skip_unless_throttled(disk)
    if os.geteuid() != 0:
        pytest.skip("takes root")
    experiment(tmp_path, SLOW, disk, is_emulated=True)
    with Background(("run", "e.yaml"), tmp_path) as tool:
        wait_until(lambda: len(set(groups_of(tool.pids(RANK)))) == 2)
        groups = set(groups_of(tool.pids(RANK)))
        rates = [(group / "blkio.throttle.write_bps_device").read_text() for group in groups]
        code, output = tool.end()
    assert code == 0, output
    assert [each.split() for each in rates] == 2 * [[disk_of(disk), "4000000"]]
    (of_cluster,) = {group.parent for group in groups}
    assert of_cluster.name.startswith(f"{PREFIX}cluster-")
    assert not of_cluster.exists()
    assert [record["status"] for record in records_of(only_run(tmp_path))] == ["ok", "ok"]
