"""What is made outside of the namespaces, and does nothing of it stay?"""

import fcntl
from pathlib import Path

import pytest

from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.storage.host_part import host_part
from broadgauge.agent.emulated.storage.tools import missing_for
from broadgauge.messages.emulated_storage import StoragePlan

MEMORY = StoragePlan(name="a", kind="memory", store="a")


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where scratch folders are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_launch_without_storages_makes_nothing(parent: Path) -> None:
    with host_part((), 2) as host:
        assert host is None
        assert not list(parent.iterdir())


def test_the_scratch_folder_is_removed_with_all_in_it(parent: Path) -> None:
    with host_part((MEMORY,), 1) as host:
        assert host is not None
        (host.scratch / "node0").mkdir()
        (host.scratch / "node0/data").write_text("much")
        assert host.scratch.parent == parent
        assert host.groups == ()
    assert not list(parent.iterdir())


def test_what_a_killed_guard_left_is_removed_and_what_is_used_stays(parent: Path) -> None:
    group = parent / "group"
    group.mkdir()
    for name in ("left", "used"):
        (parent / f"broadgauge-storage-{name}").mkdir()
        (parent / f"broadgauge-storage-{name}/lock").touch()
    (parent / "broadgauge-storage-left/groups").write_text(f"{group}\n")
    (parent / "broadgauge-storage-of-a-user").mkdir()
    with (parent / "broadgauge-storage-used/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with host_part((MEMORY,), 1):
            pass
    assert sorted(path.name for path in parent.iterdir()) == [
        "broadgauge-storage-of-a-user",
        "broadgauge-storage-used",
    ]


def test_two_rates_of_one_disk_are_refused(parent: Path) -> None:
    plans = [
        StoragePlan(name=name, kind="disk", store=name, read_gbyte_per_s=rate)
        for name, rate in (("a", 0.1), ("b", 0.2))
    ]
    with pytest.raises(EmulationError, match="different rates"), host_part(plans, 1):
        pass
    assert not list(parent.iterdir())


def test_what_lacks_is_named_with_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path))
    mount = StoragePlan(name="a", kind="s3-mount", store="a")
    said = " ".join(f"{what}: {fix}" for what, fix in missing_for([mount], device=tmp_path / "no"))
    for word in ("versitygw", "rclone", "make storage-tools", "fusermount3", "modprobe fuse"):
        assert word in said
    assert missing_for([MEMORY]) == []
    with pytest.raises(EmulationError, match="there is no versitygw"), host_part([mount], 1):
        pass


def test_a_closed_device_is_named_with_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "fuse"
    device.touch(0o600)
    monkeypatch.setattr("os.access", lambda *_: False)
    mount = StoragePlan(name="a", kind="s3-mount", store="a")
    said = [each for each in missing_for([mount], device=device) if "closed" in each[0]]
    assert said == [(f"{device} is closed to this user (mode 0600)", f"`sudo chmod 0666 {device}`")]
