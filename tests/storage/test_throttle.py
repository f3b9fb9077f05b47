"""Which cgroup limits a disk, by which number, and what is said where none does?"""

import os
from pathlib import Path

import pytest

from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.storage.throttle import (
    BlockGroups,
    DiskRates,
    find_block_groups,
    join_group,
    remove_group,
    whole_disk_of,
)


def mounts(folder: Path, *lines: str) -> Path:
    path = folder / "mounts"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_hierarchy_that_has_the_controller_is_found(tmp_path: Path) -> None:
    """As on a machine where v1 has blkio and an empty v2 is mounted too."""
    (tmp_path / "cgroup.controllers").write_text("hugetlb\n")
    v1 = "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0"
    v2 = f"cgroup2 {tmp_path} cgroup2 rw,relatime 0 0"
    assert find_block_groups(mounts(tmp_path, v2, v1)) == BlockGroups(
        folder=Path("/sys/fs/cgroup/blkio"), is_v2=False
    )
    with pytest.raises(EmulationError, match="no cgroup hierarchy has blkio or io"):
        find_block_groups(mounts(tmp_path, v2))
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    assert find_block_groups(mounts(tmp_path, v2)) == BlockGroups(folder=tmp_path, is_v2=True)


@pytest.mark.parametrize(
    ("is_v2", "written"),
    [
        (True, {"io.max": "254:0 rbps=200 wbps=100"}),
        (
            False,
            {
                "blkio.throttle.read_bps_device": "254:0 200",
                "blkio.throttle.write_bps_device": "254:0 100",
            },
        ),
    ],
)
def test_a_group_is_told_its_rates(tmp_path: Path, is_v2: bool, written: dict[str, str]) -> None:
    groups = BlockGroups(folder=tmp_path, is_v2=is_v2)
    group = groups.make("mine", "254:0", DiskRates(read=200, write=100))
    assert {path.name: path.read_text() for path in group.iterdir()} == written
    join_group(group)
    assert (group / "cgroup.procs").read_text() == "0"
    only_read = groups.make("reads", "254:0", DiskRates(read=5, write=None))
    assert [path.read_text().split("=")[-1].split()[-1] for path in only_read.iterdir()] == ["5"]


def test_who_may_not_is_told_what_it_needs(tmp_path: Path) -> None:
    groups = BlockGroups(folder=tmp_path / "no-such-folder", is_v2=False)
    with pytest.raises(EmulationError, match="needs root") as caught:
        groups.make("mine", "254:0", DiskRates(read=1, write=1))
    assert caught.value.step.startswith("throttle the disk 254:0")


def test_a_partition_s_number_becomes_its_disk_s(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    disk = tmp_path / "devices/vda"
    partition = disk / "vda1"
    partition.mkdir(parents=True)
    (disk / "dev").write_text("254:0\n")
    (partition / "dev").write_text("254:1\n")
    named = tmp_path / f"dev/block/{os.major(number)}:{os.minor(number)}"
    named.parent.mkdir(parents=True)
    named.symlink_to(disk)
    assert whole_disk_of(tmp_path, sysfs=tmp_path) == "254:0"
    named.unlink()
    (partition / "partition").write_text("1\n")
    named.symlink_to(partition)
    assert whole_disk_of(tmp_path, sysfs=tmp_path) == "254:0"
    named.unlink()
    with pytest.raises(EmulationError, match="is on no disk"):
        whole_disk_of(tmp_path, sysfs=tmp_path)


def test_a_group_that_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_group(tmp_path / "gone")
