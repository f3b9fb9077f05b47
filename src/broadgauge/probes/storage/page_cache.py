"""How much of a file does the kernel hold in memory, and can it be made to let go?

Nothing here needs root. Source: Linux man pages posix_fadvise(2), proc_pid_io(5);
Documentation/admin-guide/mm, cachestat (6.5 and newer); mm/filemap.c, which refuses it of files
that one may not write.
"""

import ctypes
import errno
import os

CACHESTAT = 451
"""Of all architectures. Source: Linux, include/uapi/asm-generic/unistd.h."""
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
    """Of an open file, whole pages; None: this kernel does not say, or not of a file of others."""
    counts, whole = _Counts(), _Range(0, 0)
    if _LIBC.syscall(CACHESTAT, fd, ctypes.byref(whole), ctypes.byref(counts), 0) == 0:
        return int(counts.cached) * _PAGE_BYTES
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.EBADF):
        return None
    raise OSError(number, os.strerror(number))


def let_go(fd: int) -> None:
    """Asks the kernel to drop the file's pages. It keeps those that are dirty or that anybody has
    mapped, and all of a file system that is memory: whether it did is seen by `cached_bytes`."""
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
