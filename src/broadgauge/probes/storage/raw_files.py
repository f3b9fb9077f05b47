"""How fast is a file written and read from one end to the other, with nothing in between?

What other phases are held against. Content is random, and repeats itself further away than file
systems look that compress: they have nothing to save. Parts follow each other without a gap, so
that they add up to the whole.
"""

import ctypes
import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.probes.storage.stopwatch import Stopwatch, Timed
from broadgauge.probes.trial import RefusedError

CONTENT_BYTES = 16 << 20
"""Repeated after that, or a little more. Btrfs compresses 128 KiB at once, and ZFS a record, which
is 16 MiB at most. Source: Linux, fs/btrfs/compression.h; OpenZFS, zfsprops(7), `recordsize`."""
HUGE_PAGE_BYTES = 2 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What a file is written of."""

    file_bytes: int
    request_bytes: int
    """Of all but the last."""
    content: memoryview
    """Of whole requests, or all of the file; written again from its start where it ends."""

    def __iter__(self) -> Iterator[tuple[int, memoryview]]:
        """The place in the file of each, and its content."""
        for offset in range(0, self.file_bytes, self.request_bytes):
            begin = offset % len(self.content)
            length = min(self.request_bytes, self.file_bytes - offset)
            yield offset, self.content[begin : begin + length]


def random_requests(file_bytes: int, request_bytes: int) -> Requests:
    whole_bytes = -(-CONTENT_BYTES // request_bytes) * request_bytes
    content = request_memory(min(whole_bytes, file_bytes))
    content[:] = os.urandom(len(content))
    return Requests(file_bytes=file_bytes, request_bytes=request_bytes, content=content)


def request_memory(size_bytes: int) -> memoryview:
    """Where O_DIRECT can take requests from, in huge pages where the kernel has them.

    A device takes a request piece by piece. Pages of 4 KiB lie anywhere, so that 1 MiB is 256
    pieces: a virtual disk read it at 0.9 GB/s, and at 1.7 into a huge page (measured here).
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    whole_bytes = -(-size_bytes // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    room = mmap.mmap(-1, whole_bytes + HUGE_PAGE_BYTES, flags=flags)
    with suppress(OSError):  # a kernel without huge pages
        room.madvise(mmap.MADV_HUGEPAGE)
    begin = -ctypes.addressof(ctypes.c_char.from_buffer(room)) % HUGE_PAGE_BYTES
    return memoryview(room)[begin : begin + size_bytes]


def write_file(path: Path, requests: Requests, *, is_direct: bool) -> Timed:
    """A new one, until it is durable: the file and its name in the folder are on the device, as far
    as the file system says so. Raises OSError."""
    count = 0
    watch = Stopwatch()
    fd = os.open(path, _flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL, is_direct=is_direct), 0o600)
    try:
        watch.ends("open")
        for offset, content in requests:
            count += _write_all(fd, content, offset)
        watch.ends("write")
        os.fsync(fd)
        watch.ends("fsync")
    finally:
        os.close(fd)
    watch.ends("close")
    sync_folder(path.parent)
    watch.ends("fsync folder")
    return Timed(operations_count=count, parts_s=watch.parts_s)


def read_file(path: Path, request_bytes: int, *, is_direct: bool) -> Timed:
    """Into memory that is used again for each request. Raises OSError."""
    count = 0
    room = request_memory(request_bytes)
    watch = Stopwatch()
    fd = os.open(path, _flags(os.O_RDONLY, is_direct=is_direct))
    try:
        watch.ends("open")
        offset = 0
        while got := os.preadv(fd, [room], offset):
            offset += got
            count += 1
        watch.ends("read")
    finally:
        os.close(fd)
    watch.ends("close")
    return Timed(operations_count=count, parts_s=watch.parts_s)


def sync_folder(folder: Path) -> None:
    """A file that is fsync'd can still be lost by name. Source: fsync(2)."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def holds(path: Path, requests: Requests) -> bool:
    """Is every byte what was written?"""
    with path.open("rb", buffering=0) as file:
        for _, content in requests:
            if file.read(len(content)) != content:
                return False
        return not file.read(1)


def refuse_no_direct(folder: Path) -> None:
    """Raises RefusedError where the file system takes no O_DIRECT, as tmpfs before Linux 6.6."""
    path = folder / "direct"
    try:
        os.close(os.open(path, _flags(os.O_WRONLY | os.O_CREAT, is_direct=True), 0o600))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise RefusedError(
            f"the file system of {folder} takes no requests past the page cache: `direct: false`"
        ) from error
    finally:
        path.unlink(missing_ok=True)


def _flags(flags: int, *, is_direct: bool) -> int:
    return flags | os.O_CLOEXEC | (os.O_DIRECT if is_direct else 0)


def _write_all(fd: int, content: memoryview, offset: int) -> int:
    """In how many calls: a file system may take less than it is given."""
    count = 0
    while content:
        taken = os.pwrite(fd, content, offset)
        content, offset, count = content[taken:], offset + taken, count + 1
    return count
