"""Is a cold read told from a warm one, whatever was asked for?"""

import mmap
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.agent.emulated.namespaces import needs_user_namespace
from broadgauge.probes.storage.cache_proof import SeenRead, proof_of
from broadgauge.probes.storage.file_systems import FileSystem, file_system_of
from broadgauge.probes.storage.page_cache import (
    cached_bytes,
    cached_of_files,
    fill_cache,
    let_go,
    sync_file_system,
)
from broadgauge.probes.storage.process_io import io_since, process_io

SIZE = 4 << 20
EXT4 = FileSystem(kind="ext4", source="/dev/vda", mounted_at="/")
NFS = FileSystem(kind="nfs4", source="server:/export", mounted_at="/mnt")
MEMORY = FileSystem(kind="tmpfs", source="tmpfs", mounted_at="/dev/shm")
KINDS = st.sampled_from((EXT4, NFS, MEMORY, None))
COUNTS = st.none() | st.integers(0, 2 * SIZE)


def read_whole(path: Path, fd: int) -> SeenRead:
    cached, before = cached_bytes(fd), process_io()
    path.read_bytes()
    counted = io_since(before)
    seen = None if counted is None else counted.device_read_bytes
    return SeenRead(size_bytes=SIZE, device_bytes=seen, cached_before_bytes=cached)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.bin"
    path.write_bytes(os.urandom(SIZE))
    return path


def test_pages_that_are_let_go_are_read_again(file: Path) -> None:
    file_system = file_system_of(file.parent)
    if file_system is None or not file_system.is_counted:
        pytest.skip(f"this folder is on {file_system}, which counts no reads")
    fd = os.open(file, os.O_RDWR)
    let_go(fd)
    assert proof_of(read_whole(file, fd), file_system).state == "cold"
    assert proof_of(read_whole(file, fd), file_system).state == "warm"
    os.close(fd)


def test_pages_that_somebody_has_mapped_make_no_cold_read(file: Path) -> None:
    """The trap: eviction is asked for, and nothing is evicted."""
    fd = os.open(file, os.O_RDWR)
    with mmap.mmap(fd, 0) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) >= 0
        let_go(fd)
        assert proof_of(read_whole(file, fd), file_system_of(file.parent)).state == "warm"
    os.close(fd)


@given(COUNTS, COUNTS, KINDS)
def test_cold_is_never_said_of_bytes_that_were_in_memory(
    device: int | None, cached: int | None, file_system: FileSystem | None
) -> None:
    seen = SeenRead(size_bytes=SIZE, device_bytes=device, cached_before_bytes=cached)
    state = proof_of(seen, file_system).state
    if state == "cold":
        assert file_system is not MEMORY
        assert (device is not None and device >= 0.99 * SIZE) or cached == 0
        assert file_system is not EXT4 or (device or 0) >= 0.99 * SIZE
    if state == "warm" and file_system is not MEMORY:
        assert (device or 0) <= 0.01 * SIZE
        assert cached is None or cached >= 0.99 * SIZE or file_system is EXT4


def test_what_nobody_counts_is_unknown() -> None:
    seen = SeenRead(size_bytes=SIZE, device_bytes=None, cached_before_bytes=None)
    assert proof_of(seen, EXT4).state == proof_of(seen, NFS).state == "unknown"
    half = SeenRead(size_bytes=SIZE, device_bytes=SIZE // 2, cached_before_bytes=SIZE // 2)
    found = proof_of(half, EXT4)
    assert found.state == "unknown"
    assert "0.50 of the bytes; in memory before: 0.50" in found.evidence


def test_the_mount_that_is_on_top_counts(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 254:0 / / rw shared:1 - ext4 /dev/vda rw\n"
        "2 1 0:30 / /data rw - nfs4 server:/a rw\n"
        "3 1 0:31 / /data rw shared:2 master:1 - fuse.rclone bucket: rw\n"
        "4 1 0:32 / /data/with\\040blank rw - tmpfs tmpfs rw\n"
    )
    paths = ("/data", "/data/x", "/database", "/data/with blank/x")
    found = [file_system_of(Path(path), mounts) for path in paths]
    assert [each and each.kind for each in found] == ["fuse.rclone", "fuse.rclone", "ext4", "tmpfs"]


def test_many_files_are_counted_together(disk: Path) -> None:
    paths = [disk / str(number) for number in range(3)]
    for path in paths:
        path.write_bytes(b"x" * 5000)
    sync_file_system(disk)
    assert cached_of_files(paths, is_let_go=False) in (15_000, None)
    cached = cached_of_files(paths, is_let_go=True)
    file_system = file_system_of(disk)
    if file_system is not None and file_system.is_counted:
        assert cached in (0, None)
    assert cached_of_files((), is_let_go=True) == 0


def test_what_is_read_ahead_proves_nothing_of_what_was_in_memory() -> None:
    """Half of a file is needed, half of that was in memory, and the device gave as much again."""
    seen = SeenRead(
        size_bytes=SIZE // 2,
        whole_bytes=SIZE,
        device_bytes=3 * SIZE // 4,
        cached_before_bytes=SIZE // 4,
    )
    assert proof_of(seen, EXT4).state == "unknown"
    assert proof_of(replace(seen, cached_before_bytes=0), EXT4).state == "cold"


def test_pages_of_another_part_are_no_warm_read() -> None:
    """Of a file that nobody counts, the half that is not needed was in memory."""
    seen = SeenRead(
        size_bytes=SIZE // 2, whole_bytes=SIZE, device_bytes=None, cached_before_bytes=SIZE // 2
    )
    assert proof_of(seen, NFS).state == "unknown"
    assert proof_of(replace(seen, cached_before_bytes=SIZE), NFS).state == "warm"


def test_a_file_is_read_into_memory_whole(file: Path) -> None:
    fd = os.open(file, os.O_RDWR)
    let_go(fd)
    fill_cache([file])
    assert cached_bytes(fd) in (None, SIZE)
    os.close(fd)


ON_OVERLAY = """
import os, sys
from broadgauge.probes.storage.page_cache import cached_bytes
with open(sys.argv[1], "w+b") as file:
    file.write(bytes(1 << 20))
    file.flush()
    print(cached_bytes(file.fileno()))
"""


@pytest.mark.namespaces
def test_nobody_says_what_is_in_memory_of_a_containers_own_layer(tmp_path: Path) -> None:
    """The kernel would say 0 of a file that was just written, and a read would be proven cold."""
    below, above, work, merged = (tmp_path / name for name in ("below", "above", "work", "merged"))
    for folder in (below, above, work, merged):
        folder.mkdir()
    options = f"lowerdir={below},upperdir={above},workdir={work}"
    user = ("--user", "--map-root-user") if needs_user_namespace() else ()
    mounted = f'mount -t overlay overlay -o {options} {merged} && exec "$0" "$@"'
    program = (sys.executable, "-c", ON_OVERLAY, str(merged / "file"))
    ran = subprocess.run(
        ["unshare", *user, "--mount", "sh", "-c", mounted, *program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "None\n"), ran.stderr
    overlay = FileSystem(kind="overlay", source="overlay", mounted_at="/")
    seen = SeenRead(size_bytes=SIZE, device_bytes=0, cached_before_bytes=None)
    assert proof_of(seen, overlay).state == "unknown"
    assert proof_of(replace(seen, device_bytes=SIZE), overlay).state == "cold"
