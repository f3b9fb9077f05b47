"""Does a cluster's block cgroup stay while the cluster lives, and no longer?"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.throttling import skip_unless_throttled

from broadgauge.agent.emulated.disk_groups import ClusterGroup
from broadgauge.agent.emulated.syscalls import CloneFlag, unshare
from broadgauge.messages.block_groups import PREFIX, block_hierarchy, locked, remove_left

NOBODY = 65_534


@pytest.fixture
def root(disk: Path) -> Path:
    skip_unless_throttled(disk)
    found = block_hierarchy()
    assert found is not None
    return found


def in_cluster(act: Callable[[], None]) -> int:
    """In a PID namespace of its own, as a cluster is. Its wait status; 0: it went well."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            unshare(CloneFlag.NEWPID)
            root_pid = os.fork()
            if root_pid == 0:
                with suppress(BaseException):
                    act()
                    os._exit(0)
                os._exit(1)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(root_pid, 0)[1]))
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_nobody_takes_it_for_one_that_was_left(root: Path) -> None:
    def live() -> None:
        made = ClusterGroup.make()
        assert made is not None
        (made.group / f"{PREFIX}rank").mkdir()  # as what a killed rank left
        with locked(root):
            remove_left(root)
        assert made.group.is_dir()
        assert not list(made.group.glob(f"{PREFIX}*"))
        made.close()
        assert not made.group.exists()

    assert in_cluster(live) == 0


def test_what_a_killed_cluster_left_goes_with_the_next(root: Path, tmp_path: Path) -> None:
    told = tmp_path / "group"

    def die() -> None:
        made = ClusterGroup.make()
        assert made is not None
        (made.group / f"{PREFIX}rank").mkdir()
        told.write_text(str(made.group))
        os._exit(7)  # leaves it as a signal would: PID 1 is spared those of its own

    assert in_cluster(die) != 0
    with locked(root):
        remove_left(root)
    assert not Path(told.read_text()).exists()


def test_who_may_make_none_has_none(root: Path) -> None:
    def be_nobody() -> None:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        assert ClusterGroup.make() is None

    assert in_cluster(be_nobody) == 0
