"""How fast are plain reads and writes of a folder, and how long does each take?

The large file is read and written around the kernel's cache (O_DIRECT) where the file system takes
it: what the device can do, not what training does.
"""

import errno
import itertools
import mmap
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadgauge.probes.storage.accounting import Operations, Parts
from broadgauge.probes.storage.cache import BLOCK_TYPES, filesystem_type

PAGE_BYTES = 4096
DEPTH = 2
"""Requests at once to a block device: one alone leaves it idle between two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeFile:
    """One file of whole blocks. `depth`: threads; 1 where a mount takes writes in order only."""

    path: Path
    file_bytes: int
    block_bytes: int
    is_direct: bool
    depth: int

    def write(self, operations: Operations, parts: Parts) -> int:
        """Synced, with its name. Gives the bytes."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC

        def one(fd: int, buffer: mmap.mmap, offset: int, size: int) -> int:
            return os.pwrite(fd, memoryview(buffer)[:size], offset)

        with parts.timed("write"), opened(self.path, flags, is_direct=self.is_direct) as fd:
            if filesystem_type(self.path) in BLOCK_TYPES:
                # Else each write that makes it longer locks the file; mounts of buckets refuse it.
                os.ftruncate(fd, self.file_bytes)
            done = self._each_block(fd, one, operations, is_filled=True)
            begin_s = time.perf_counter()
            os.fsync(fd)
            parts.add("sync", time.perf_counter() - begin_s)
        parts.seconds["write"] -= parts.seconds["sync"]
        return done

    def read(self, operations: Operations, parts: Parts) -> int:
        def one(fd: int, buffer: mmap.mmap, offset: int, size: int) -> int:
            return os.preadv(fd, [memoryview(buffer)[:size]], offset)

        with parts.timed("read"), opened(self.path, os.O_RDONLY, is_direct=self.is_direct) as fd:
            return self._each_block(fd, one, operations, is_filled=False)

    def _each_block(
        self,
        fd: int,
        one: Callable[[int, mmap.mmap, int, int], int],
        operations: Operations,
        *,
        is_filled: bool,
    ) -> int:
        numbers, done = itertools.count(), [0] * self.depth

        def work(thread: int) -> None:
            buffer = aligned_buffer(self.block_bytes, is_filled=is_filled)
            while (offset := next(numbers) * self.block_bytes) < self.file_bytes:
                size = min(self.block_bytes, self.file_bytes - offset)
                begin_s = time.perf_counter()
                count = one(fd, buffer, offset, size)
                operations.seconds.append(time.perf_counter() - begin_s)
                if count != size:
                    raise OSError(errno.EIO, f"{count} of {size} bytes at {offset}", str(self.path))
                done[thread] += count

        if self.depth == 1:
            work(0)
        else:
            with ThreadPoolExecutor(self.depth) as threads:
                list(threads.map(work, range(self.depth)))
        return sum(done)


def aligned_buffer(size: int, *, is_filled: bool) -> mmap.mmap:
    """Pages of its own, as O_DIRECT wants; filled with what doesn't compress."""
    buffer = mmap.mmap(-1, max(size, PAGE_BYTES))
    if is_filled:
        buffer[:size] = random.Random(0).randbytes(size)
    return buffer


@contextmanager
def opened(path: Path, flags: int, *, is_direct: bool) -> Iterator[int]:
    fd = os.open(path, flags | (os.O_DIRECT if is_direct else 0), 0o644)
    try:
        yield fd
    finally:
        os.close(fd)


def takes_direct(folder: Path, block_bytes: int, file_bytes: int) -> bool:
    """Does a block go around the cache here? Writes one page and removes it."""
    if block_bytes % PAGE_BYTES or file_bytes % PAGE_BYTES:
        return False
    trial = folder / "direct"
    try:
        with opened(trial, os.O_WRONLY | os.O_CREAT, is_direct=True) as fd:
            os.pwrite(fd, aligned_buffer(PAGE_BYTES, is_filled=False), 0)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
            raise
        return False
    finally:
        trial.unlink(missing_ok=True)
    return True


def chosen_pages(file_bytes: int, count: int) -> list[int]:
    """The same in every process; some may come twice."""
    chosen, pages = random.Random(1), max(1, file_bytes // PAGE_BYTES)
    return [chosen.randrange(pages) for _ in range(count)]


def read_pages(path: Path, count: int, operations: Operations) -> int:
    """4 KiB each, anywhere in the file, without the kernel's reading ahead."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        done = 0
        for page in chosen_pages(os.fstat(fd).st_size, count):
            begin_s = time.perf_counter()
            done += len(os.pread(fd, PAGE_BYTES, page * PAGE_BYTES))
            operations.seconds.append(time.perf_counter() - begin_s)
        return done
    finally:
        os.close(fd)


def write_small(folder: Path, count: int, operations: Operations) -> int:
    """Files of 4 KiB, each fsynced."""
    folder.mkdir(parents=True, exist_ok=True)
    content = random.Random(2).randbytes(PAGE_BYTES)
    for number in range(count):
        begin_s = time.perf_counter()
        with (folder / str(number)).open("wb", buffering=0) as file:
            file.write(content)
            os.fsync(file.fileno())
        operations.seconds.append(time.perf_counter() - begin_s)
    return count * PAGE_BYTES


def read_small(folder: Path, count: int, operations: Operations) -> int:
    done = 0
    for number in range(count):
        begin_s = time.perf_counter()
        with (folder / str(number)).open("rb", buffering=0) as file:
            done += len(file.read())
        operations.seconds.append(time.perf_counter() - begin_s)
    return done


def use_names(folder: Path, count: int, operations: Operations) -> int:
    """Makes, asks for and removes empty files; each of the three is an operation."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"empty{number}" for number in range(count)]
    steps: tuple[Callable[[Path], object], ...] = (
        lambda path: path.open("xb").close(),
        Path.stat,
        Path.unlink,
    )
    for step in steps:
        for path in paths:
            begin_s = time.perf_counter()
            step(path)
            operations.seconds.append(time.perf_counter() - begin_s)
    return 0
