"""Does a throttle hold what was asked, and leave nothing?"""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.judgements import Note
from tests.throttling import RATES, skip_unless_throttled

from broadgauge.messages.block_groups import PREFIX
from broadgauge.messages.storage import RawPhase, StorageTask, Throttle
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage.raw_files import random_requests, read_file, write_file
from broadgauge.probes.storage.throttle import disk_of, throttled, throttled_as_told
from broadgauge.probes.trial import RefusedError

IDENTITY = RankIdentity(
    rank=3, world_size=4, local_rank=1, local_world_size=2, node=1,
    master_addr="10.0.0.1", master_port=os.getpid(),
)  # fmt: skip
NOBODY = 65_534


def _groups_of_self() -> dict[str, str]:
    """By hierarchy."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return {name: group for _, name, group in (line.split(":", 2) for line in lines)}


def _block_group() -> str:
    return next(group for name, group in _groups_of_self().items() if "blkio" in name)


def _task(folder: Path, *, is_throttled: bool = True) -> StorageTask:
    phase = RawPhase(size_bytes=4096, request_bytes=4096, is_direct=False, cache="cold")
    throttle = Throttle(storage="slow-disk", **RATES) if is_throttled else None
    return StorageTask(folder=str(folder), phase=phase, repetitions=1, throttle=throttle)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    skip_unless_throttled(tmp_path)
    return tmp_path


def test_the_group_has_the_rates_and_the_rank_and_goes(folder: Path) -> None:
    former = _groups_of_self()
    with throttled(folder, f"test-{os.getpid()}", **RATES) as group:
        for access in ("read", "write"):
            told = (group / f"blkio.throttle.{access}_bps_device").read_text().split()
            assert told == [disk_of(folder), str(RATES[f"{access}_byte_per_s"])]
        assert str(os.getpid()) in (group / "cgroup.procs").read_text().split()
        changed = {name for name, each in _groups_of_self().items() if each != former[name]}
        assert ["blkio" in name for name in changed] == [True]
        child = subprocess.run(
            ["cat", "/proc/self/cgroup"], capture_output=True, text=True, check=True
        )
        assert group.name in child.stdout
    assert not group.exists()
    assert _groups_of_self() == former


def test_a_failure_inside_leaves_nothing(folder: Path) -> None:
    former = _groups_of_self()
    with pytest.raises(ZeroDivisionError), throttled(folder, f"fails-{os.getpid()}", **RATES) as at:
        raise ZeroDivisionError
    assert not at.exists()
    assert _groups_of_self() == former


def test_ranks_of_a_node_share_a_group_and_others_do_not(folder: Path) -> None:
    def group_of(identity: RankIdentity) -> str:
        with throttled_as_told(_task(folder), identity):
            return _block_group()

    group = group_of(IDENTITY)
    assert PREFIX in group
    assert group_of(replace(IDENTITY, rank=2, local_rank=0)) == group
    other_node = group_of(replace(IDENTITY, node=0))
    other_launch = group_of(replace(IDENTITY, master_port=IDENTITY.master_port + 1))
    assert len({group, other_node, other_launch}) == 3


def test_the_last_rank_out_removes_the_group(folder: Path) -> None:
    is_in, says_in = os.pipe()
    stays, lets_go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(lets_go)
        with throttled_as_told(_task(folder), IDENTITY):
            os.write(says_in, b"x")
            os.read(stays, 1)  # until the other end is closed
        os._exit(0)
    os.read(is_in, 1)
    with throttled_as_told(_task(folder), IDENTITY):
        name = _block_group().rpartition("/")[2]
    with throttled(folder, f"look-{os.getpid()}", **RATES) as group:
        assert (group.parent / name).exists()
        os.close(lets_go)
        assert os.waitpid(child, 0)[1] == 0
        assert not (group.parent / name).exists()


def test_a_task_without_a_throttle_changes_nothing(tmp_path: Path) -> None:
    former = _groups_of_self()
    with throttled_as_told(_task(tmp_path, is_throttled=False), IDENTITY):
        assert _groups_of_self() == former


def test_who_may_make_no_group_is_told_so(folder: Path) -> None:
    """In a child, which can't take its rights back."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            with throttled_as_told(_task(Path("/")), IDENTITY):
                os._exit(1)
        except RefusedError as error:
            os.write(write_end, str(error).encode())
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as said:
        message = said.read()
    assert os.waitpid(child, 0)[1] == 0
    assert message.startswith("storage `slow-disk` can't be throttled: ")


def test_what_a_killed_rank_left_is_removed_by_the_next(folder: Path) -> None:
    owner = f"killed-{os.getpid()}"
    child = os.fork()
    if child == 0:
        with throttled(folder, owner, **RATES):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with throttled(folder, f"next-{os.getpid()}", **RATES) as group:
        left = group.parent / f"{PREFIX}{owner}"
        assert not left.exists()


def test_memory_is_refused() -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or os.major(memory.stat().st_dev):
        pytest.skip("/dev/shm is no memory here")
    words = "storage `slow-disk` can't be throttled: /dev/shm is on no block device"
    with pytest.raises(RefusedError, match=words), throttled_as_told(_task(memory), IDENTITY):
        pass


def test_a_storage_that_is_not_there_is_told_as_without_a_throttle(tmp_path: Path) -> None:
    nowhere = _task(tmp_path / "nowhere")
    with pytest.raises(RefusedError, match="is not there"), throttled_as_told(nowhere, IDENTITY):
        pass


@pytest.mark.measured
def test_direct_streams_run_at_the_rates_that_are_set(folder: Path, judgement: Note) -> None:
    path, size_bytes = folder / "stream", 1 << 30
    requests = random_requests(size_bytes, 1 << 20)
    rates = {"read_byte_per_s": 200_000_000, "write_byte_per_s": 100_000_000}
    with throttled(folder, f"measured-{os.getpid()}", **rates):
        write = write_file(path, requests, is_direct=True)
        read = read_file(path, requests.request_bytes, is_direct=True)
    for access, timed in (("read", read), ("write", write)):
        asked, reached = rates[f"{access}_byte_per_s"], size_bytes / timed.seconds
        is_right = reached == pytest.approx(asked, rel=0.05)
        judgement(
            access,
            verdict="right" if is_right else "wrong",
            figure=f"{reached / 1e6:.1f} MB/s",
            bound=f"{asked / 1e6:.0f} MB/s ± 5 %",
        )
        assert is_right, (access, reached)
