"""Is cold only said where it is proven?"""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.probes.storage import cache
from broadgauge.probes.storage.accounting import (
    KEPT_OPERATIONS,
    Operations,
    Usage,
    read_from_devices,
)

SIZE = 4 * 2**20
MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:24 / /dev/shm rw,nosuid - tmpfs tmpfs rw
41 22 0:50 / /mnt/bucket rw - fuse.rclone bucket rw
42 22 0:51 / /mnt/bucket/inner rw - nfs4 server:/x rw
43 22 0:52 / /mnt/with\\040space rw - xfs /dev/vdb rw
"""


@pytest.fixture
def on_block(tmp_path) -> Path:
    """A file on a file system whose reads are counted."""
    if cache.filesystem_type(tmp_path) not in cache.BLOCK_TYPES:
        pytest.skip(f"{tmp_path} is on {cache.filesystem_type(tmp_path)}, which counts no reads")
    if read_from_devices() is None:
        pytest.skip("/proc/self/io does not tell")
    file = tmp_path / "large"
    file.write_bytes(os.urandom(SIZE))
    return file


def read_and_prove(file: Path) -> cache.CacheProof:
    before, usage = cache.look_before([file]), Usage.now()
    file.read_bytes()
    return cache.prove(before, usage.until_now().read_bytes, SIZE)


def test_an_evicted_file_is_proven_cold_and_then_warm(on_block):
    cache.evict([on_block])
    assert read_and_prove(on_block).state == "cold"
    again = read_and_prove(on_block)
    assert again.state == "warm"
    assert again.evidence == "read_bytes 0.00 of 4 MiB"


def test_a_warm_cache_sold_as_cold_is_found_out(on_block, monkeypatch):
    """Where evicting does nothing, as it does to mapped and dirty pages."""
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: None)
    cache.evict([on_block])
    assert read_and_prove(on_block).state == "warm"


def test_half_of_a_file_in_memory_is_neither(on_block):
    cache.evict([on_block])
    with on_block.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        file.read(SIZE // 2)
    assert read_and_prove(on_block).state == "unknown"


def test_pages_are_counted_where_the_kernel_does(on_block):
    pages = cache.cached_pages([on_block])
    if pages is None:
        pytest.skip("cachestat(2) is not of this kernel, or refused")
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    assert pages == cache.Pages(cached=SIZE // page_bytes, total=SIZE // page_bytes)
    cache.evict([on_block])
    evicted = cache.cached_pages([on_block])
    assert evicted is not None
    assert evicted.cached == 0


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/hosts", "ext4"),
        ("/dev/shm/x", "tmpfs"),
        ("/mnt/bucket/a/b", "fuse.rclone"),
        ("/mnt/bucket/inner/a", "nfs4"),
        ("/mnt/buckets", "ext4"),
        ("/mnt/with space/a", "xfs"),
    ],
)
def test_the_innermost_mount_tells_the_type(path, kind):
    assert cache.filesystem_type(Path(path), MOUNTS) == kind


def of(kind: str, cached: int | None, *, is_fresh: bool = False) -> cache.Before:
    pages = None if cached is None else cache.Pages(cached=cached, total=100)
    return cache.Before(type=kind, pages=pages, is_fresh=is_fresh)


@pytest.mark.parametrize(
    ("before", "read_bytes", "state"),
    [
        (of("tmpfs", 0), 0, "warm"),
        (of("ext4", 0), 0, "warm"),  # no page was there, and yet nothing was fetched
        (of("ext4", 0), 990, "cold"),
        (of("ext4", None), 990, "cold"),
        (of("ext4", 100), 990, "unknown"),  # other files' bytes
        (of("fuse.rclone", 50), 5000, "unknown"),
        (of("ext4", 0), None, "unknown"),
        (of("nfs4", 0), 0, "cold"),
        (of("nfs4", 1), 0, "unknown"),
        (of("nfs4", 100), 0, "warm"),
        (of("nfs4", None), 0, "unknown"),
        (of("fuse.rclone", 0), 0, "unknown"),
        (of("fuse.rclone", 0, is_fresh=True), 0, "cold"),
        (of("fuse.rclone", 3, is_fresh=True), 0, "unknown"),
        (of("zfs", 0), 0, "unknown"),
        (of("zfs", 0), 1000, "cold"),
    ],
)
def test_what_proves_which_state(before, read_bytes, state):
    proof = cache.prove(before, read_bytes, 1000)
    assert proof.state == state
    assert proof.evidence


@given(
    kind=st.sampled_from(["ext4", "tmpfs", "nfs4", "fuse.rclone", "fuse.x", "unknown"]),
    cached=st.none() | st.integers(0, 100),
    read_bytes=st.none() | st.integers(0, 2000),
    is_fresh=st.booleans(),
)
def test_cold_is_never_said_without_bytes_fetched_or_no_page_cached(
    kind, cached, read_bytes, is_fresh
):
    proof = cache.prove(of(kind, cached, is_fresh=is_fresh), read_bytes, 1000)
    if proof.state == "cold":
        assert kind != "tmpfs"
        assert (read_bytes or 0) >= 990 or cached == 0


@given(st.integers(0, 5000))
def test_kept_operations_are_evenly_chosen_and_few(count):
    operations = Operations(seconds=[float(n) for n in range(count)])
    chosen = operations.chosen()
    assert len(chosen) <= KEPT_OPERATIONS
    assert len(chosen) >= min(count, KEPT_OPERATIONS // 2)
    assert len({after - before for before, after in itertools.pairwise(chosen)}) <= 1
