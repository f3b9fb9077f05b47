"""How long is this process in calls to the kernel that read a file?"""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MOST_OF_A_CALL = 0x7FFFF000
"""Bytes that the kernel moves in one call. Source: read(2)."""


class ReadCalls:
    """Of several files together."""

    def __init__(self) -> None:
        self.seconds, self.count = 0.0, 0

    @contextmanager
    def reading(self, path: Any) -> Iterator[Any]:
        """The file as `open` gives it, through a buffer of Python's size."""
        begin_s = time.perf_counter()
        raw = _TimedRaw(path, self)
        self.seconds += time.perf_counter() - begin_s
        with io.BufferedReader(raw, max(Path(path).stat().st_blksize, 1)) as file:
            yield file


class _TimedRaw(io.FileIO):
    """All that a buffered reader asks for."""

    def __init__(self, path: Any, calls: ReadCalls) -> None:
        super().__init__(path, "r")
        self._calls = calls

    def readinto(self, room: Any) -> int | None:
        with self._timed():
            self._calls.count += 1
            return super().readinto(room)

    def readall(self) -> bytes:
        """The file's size is known: no call asks for less than the kernel gives."""
        with self._timed():
            content = super().readall()
        self._calls.count += -(-len(content) // MOST_OF_A_CALL)
        return content

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begin_s = time.perf_counter()
        yield
        self._calls.seconds += time.perf_counter() - begin_s
