"""How fast is a file written and read from one end to the other, with nothing in between?

What other phases are held against. Content is random: a file system that compresses has nothing to
save. Parts follow each other without a gap, so that they add up to the whole.
"""

import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from broadgauge.probes.storage.stopwatch import Stopwatch, Timed
from broadgauge.probes.trial import RefusedError


def random_request(size_bytes: int) -> mmap.mmap:
    """A request's content, where O_DIRECT can take it from."""
    content = mmap.mmap(-1, size_bytes)
    content.write(os.urandom(size_bytes))
    return content


def write_file(path: Path, size_bytes: int, request: mmap.mmap, *, is_direct: bool) -> Timed:
    """A new one, until it is durable: the file and its name in the folder are on the device, as far
    as the file system says so. Raises OSError."""
    count = 0
    watch = Stopwatch()
    fd = os.open(path, _flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL, is_direct=is_direct), 0o600)
    try:
        watch.ends("open")
        for offset, length in _requests(size_bytes, len(request)):
            count += _write_all(fd, memoryview(request)[:length], offset)
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
    room = mmap.mmap(-1, request_bytes)
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


def holds(path: Path, size_bytes: int, request: mmap.mmap) -> bool:
    """Is every byte what was written?"""
    with path.open("rb", buffering=0) as file:
        for _, length in _requests(size_bytes, len(request)):
            if file.read(length) != request[:length]:
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


def _requests(size_bytes: int, request_bytes: int) -> Iterator[tuple[int, int]]:
    """Offset and length of each."""
    for offset in range(0, size_bytes, request_bytes):
        yield offset, min(request_bytes, size_bytes - offset)


def _write_all(fd: int, content: memoryview, offset: int) -> int:
    """In how many calls: a file system may take less than it is given."""
    count = 0
    while content:
        taken = os.pwrite(fd, content, offset)
        content, offset, count = content[taken:], offset + taken, count + 1
    return count
