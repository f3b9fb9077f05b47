"""Does a read come from the storage or from memory, and what proves it?

Having asked the kernel to forget a file proves nothing: it keeps what is mapped or dirty. Source:
posix_fadvise(2), cachestat(2) (Documentation/mm/…, Linux 6.5), /proc/<pid>/io. mincore(2) says
that all of a foreign file is cached, and is not asked.
"""

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.storage import CacheProof, CacheState
from broadgauge.wording.amounts import show_size

COLD_RATIO = 0.99
"""Of the bytes of a read, from a block device: cold. Source: issue of this probe, "cache truth"."""
WARM_RATIO = 0.01
BLOCK_TYPES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay"})
"""Whose reads /proc/self/io counts."""
MEMORY_TYPES = frozenset({"tmpfs", "ramfs"})
NETWORK_TYPES = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "gpfs", "9p", "fuse.sshfs"}
)
"""Without a cache on this machine but the kernel's pages."""
CACHESTAT = 451
"""The same number on every architecture. Source: include/uapi/asm-generic/unistd.h."""


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _CacheStat(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    cached: int
    total: int


def filesystem_type(path: Path, mounts: str | None = None) -> str:
    """`ext4`, `fuse.rclone`, `tmpfs`: of the mount that the path is in.

    `mounts`: the text of /proc/self/mountinfo. Source: proc_pid_mountinfo(5).
    """
    text = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
    best, found = -1, "unknown"
    real = path.resolve()
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        point = before.split(" ")[4].encode().decode("unicode_escape")
        if real.is_relative_to(point) and len(point) >= best:
            best, found = len(point), after.split(" ")[0]
    return found


def evict(files: Sequence[Path]) -> None:
    """Asks the kernel to forget these files; what it keeps, the proof finds. Needs no root."""
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        try:
            os.fsync(fd)  # dirty pages stay
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def warm(files: Sequence[Path], block_bytes: int = 1 << 20) -> None:
    """Reads all of them once."""
    for file in files:
        with file.open("rb", buffering=0) as content:
            while content.read(block_bytes):
                pass


def cached_pages(files: Sequence[Path]) -> Pages | None:
    """None: this kernel doesn't count, or not for us (the file is another user's)."""
    libc = ctypes.CDLL(None, use_errno=True)
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    cached = total = 0
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        try:
            found, everything = _CacheStat(), _Range(0, 0)
            answer = libc.syscall(
                CACHESTAT, fd, ctypes.byref(everything), ctypes.byref(found), ctypes.c_uint(0)
            )
            if answer != 0:
                return None
            cached += found.cache
            total += -(-os.fstat(fd).st_size // page_bytes)
        finally:
            os.close(fd)
    return Pages(cached=cached, total=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was known of the files just before they were read."""

    type: str
    pages: Pages | None
    is_fresh: bool = False
    """Put into the bucket behind the mount, and never read through this mount."""


def look_before(files: Sequence[Path], *, is_fresh: bool = False) -> Before:
    kind = filesystem_type(files[0]) if files else "unknown"
    return Before(type=kind, pages=cached_pages(files), is_fresh=is_fresh)


def prove(before: Before, read_bytes: int | None, num_bytes: int) -> CacheProof:
    """`read_bytes`: from block devices meanwhile, by all ranks that read these files here;
    `num_bytes`: of the files."""
    if before.type in MEMORY_TYPES:
        return CacheProof(state="warm", evidence=f"{before.type} is memory: it is never cold")
    is_mount = before.type in NETWORK_TYPES or before.type.startswith("fuse")
    was_cached = before.pages is not None and before.pages.cached > WARM_RATIO * before.pages.total
    is_counted = read_bytes is not None and num_bytes and not is_mount and not was_cached
    # What else this process fetched, a library's code, would pass for the file on a mount.
    if is_counted and (read_bytes or 0) >= COLD_RATIO * num_bytes:
        return _counted("cold", read_bytes or 0, num_bytes)
    if before.type in BLOCK_TYPES:
        return _prove_on_block(read_bytes, num_bytes)
    return _prove_elsewhere(before)


def _prove_on_block(read_bytes: int | None, num_bytes: int) -> CacheProof:
    if read_bytes is None:
        return CacheProof(state="unknown", evidence="/proc/self/io does not tell read_bytes")
    state: CacheState = "warm" if read_bytes <= WARM_RATIO * num_bytes else "unknown"
    return _counted(state, read_bytes, num_bytes)


def _counted(state: CacheState, read_bytes: int, num_bytes: int) -> CacheProof:
    ratio = read_bytes / num_bytes if num_bytes else 0.0
    return CacheProof(state=state, evidence=f"read_bytes {ratio:.2f} of {show_size(num_bytes)}")


def _prove_elsewhere(before: Before) -> CacheProof:
    """A mount: the kernel's pages can be counted, the daemon's own cache can't be seen."""
    pages = before.pages
    if pages is None:
        why = f"cachestat can't tell of this {before.type}"
        return CacheProof(state="unknown", evidence=why)
    seen = f"{pages.cached} of {pages.total} pages cached on {before.type}"
    if before.is_fresh and pages.cached == 0:
        return CacheProof(state="cold", evidence=f"{seen}, put into the bucket behind it")
    if pages.cached == pages.total:
        return CacheProof(state="warm", evidence=seen)
    if before.type in NETWORK_TYPES and pages.cached == 0:
        return CacheProof(state="cold", evidence=f"{seen}; the server's memory can't be seen")
    why = "" if before.type in NETWORK_TYPES else "; its own cache can't be seen"
    return CacheProof(state="unknown", evidence=seen + why)


def of_objects(num_bytes: int) -> CacheProof:
    fetched = f"{show_size(num_bytes)} fetched from the store, nothing between keeps objects"
    return CacheProof(state="cold", evidence=fetched)
