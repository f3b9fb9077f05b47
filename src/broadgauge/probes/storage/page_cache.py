"""How much of a file does the kernel hold in memory, and can it be made to let go?

Nothing here needs root. Source: Linux man pages posix_fadvise(2), proc_pid_io(5);
Documentation/admin-guide/mm, cachestat (6.5 and newer); mm/filemap.c, which refuses it of files
that one may not write.
"""

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

CACHESTAT = 451
"""Of all architectures. Source: Linux, include/uapi/asm-generic/unistd.h."""
OVERLAY = 0x794C7630
"""Source: Linux, include/uapi/linux/magic.h."""
READ_BYTES = 1 << 20
_STATFS_BYTES = 256
"""More than any architecture's `struct statfs` takes."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    _fields_ = [
        ("cached", ctypes.c_uint64),
        ("dirty", ctypes.c_uint64),
        ("writeback", ctypes.c_uint64),
        ("evicted", ctypes.c_uint64),
        ("recently_evicted", ctypes.c_uint64),
    ]


def cached_bytes(fd: int) -> int | None:
    """Of an open file, whole pages; None: this kernel does not say, or not of a file of others, or
    it would say 0 of each file, as of an overlay's (a container's own layer). Raises OSError."""
    if _file_system_number(fd) == OVERLAY:
        return None
    counts, whole = _Counts(), _Range(0, 0)
    if _LIBC.syscall(CACHESTAT, fd, ctypes.byref(whole), ctypes.byref(counts), 0) == 0:
        return int(counts.cached) * _PAGE_BYTES
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.EBADF):
        return None
    raise OSError(number, os.strerror(number))


def _file_system_number(fd: int) -> int:
    """Source: fstatfs(2): the first word of what it fills, of which 32 bits count."""
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.fstatfs(fd, status) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(ctypes.c_uint32.from_buffer(status).value)


def fill_cache(paths: Iterable[Path]) -> None:
    """Into the page cache, as far as it holds them: what a rank has not read yet, too. Raises
    OSError."""
    for path in paths:
        with path.open("rb", buffering=0) as file:
            room = bytearray(READ_BYTES)
            while file.readinto(room):
                pass


def let_go(fd: int) -> None:
    """Asks the kernel to drop the file's pages. It keeps those that are dirty or that anybody has
    mapped, and all of a file system that is memory: whether it did is seen by `cached_bytes`."""
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def cached_of_files(paths: Iterable[Path], *, is_let_go: bool) -> int | None:
    """Of all of them, at most their sizes, after the kernel was asked to drop them or not; None: it
    does not say of one. They are on the device already (`sync_file_system`): to fsync each would
    take a write to the device for each. Raises OSError."""
    total: int | None = 0
    for path in paths:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if is_let_go:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            cached = cached_bytes(fd)
            size_bytes = os.fstat(fd).st_size
        finally:
            os.close(fd)
        total = None if total is None or cached is None else total + min(cached, size_bytes)
    return total


def sync_file_system(folder: Path) -> None:
    """All that was written to it is on the device. Raises OSError. Source: syncfs(2)."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _LIBC.syncfs(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(fd)
