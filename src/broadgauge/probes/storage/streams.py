"""How long do the writes and reads of a library take, seen from inside of it?

`torch.save`, `torch.load` and distributed checkpoints are given streams of ours; what they take
beside them is serialising. Two looks at the clock for each call are all that is added.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from broadgauge.probes.storage.accounting import Operations, Parts
from broadgauge.probes.storage.objects import key_of, open_store
from broadgauge.probes.storage.place import OwnPlace

BUFFER_BYTES = 1 << 20
"""Small writes are put together, as `open` does with less; larger ones pass by."""


class WriteStream:
    """Writes to a file or an object, counts, and syncs when it is closed."""

    def __init__(self, raw: Any, parts: Parts, operations: Operations, *, is_file: bool) -> None:
        self._raw, self._parts, self._operations = raw, parts, operations
        self._part, self._is_file = "write" if is_file else "upload", is_file
        self.num_bytes = 0
        self.error: BaseException | None = None

    def write(self, data: Any) -> int:
        begin_s = time.perf_counter()
        try:
            written: int = self._raw.write(data)
        except BaseException as error:
            self.error = error  # torch's writer makes another one of it
            raise
        seconds = time.perf_counter() - begin_s
        self._parts.add(self._part, seconds)
        self._operations.seconds.append(seconds)
        self.num_bytes += written
        return written

    def tell(self) -> int:
        position: int = self._raw.tell()
        return position

    def flush(self) -> None:
        self._raw.flush()

    def close(self) -> None:
        if self._raw.closed:
            return
        if not self._is_file:
            with self._parts.timed(self._part):
                self._raw.close()
            return
        with self._parts.timed(self._part):
            self._raw.flush()
        with self._parts.timed("sync"):
            os.fsync(self._raw.fileno())
            self._raw.close()

    def abandon(self) -> None:
        """After an error: closed, whatever becomes of it."""
        with contextlib.suppress(OSError, ValueError):
            self._raw.close()


@contextlib.contextmanager
def writing(
    own: OwnPlace, name: str, parts: Parts, operations: Operations
) -> Iterator[WriteStream]:
    """A new file or object; whole and synced when the block ends."""
    stream = WriteStream(_create(own, name), parts, operations, is_file=own.folder is not None)
    with own_error_of(stream):
        try:
            yield stream
            stream.close()
        except BaseException:
            stream.abandon()
            raise


@contextlib.contextmanager
def own_error_of(stream: WriteStream) -> Iterator[None]:
    """What the storage refused is raised itself, not what a library makes of it."""
    try:
        yield
    except BaseException as error:
        if stream.error is not None and stream.error is not error:
            raise stream.error from error
        raise


def _create(own: OwnPlace, name: str) -> Any:
    if own.folder is not None:
        path = own.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb", buffering=BUFFER_BYTES)
    assert own.objects is not None
    return open_store(own.objects).open(key_of(own.objects, name), "wb")


class ReadStream:
    """Reads of a library from a file."""

    def __init__(self, raw: Any, parts: Parts, operations: Operations) -> None:
        self._raw, self._parts, self._operations = raw, parts, operations
        self.num_bytes = 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._timed(self._raw.read, size)
        self.num_bytes += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        count: int = self._timed(self._raw.readinto, buffer)
        self.num_bytes += count
        return count

    def readline(self) -> bytes:
        line: bytes = self._timed(self._raw.readline)
        return line

    def seek(self, position: int, whence: int = 0) -> int:
        now: int = self._raw.seek(position, whence)
        return now

    def tell(self) -> int:
        position: int = self._raw.tell()
        return position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        begin_s = time.perf_counter()
        result = call(*arguments)
        seconds = time.perf_counter() - begin_s
        self._parts.add("read", seconds)
        self._operations.seconds.append(seconds)
        return result


def time_streams(file_system: Any, parts: Parts, operations: Operations, *, is_file: bool) -> None:
    """Has a distributed checkpoint's file system write through streams of ours."""
    original = file_system.create_stream

    @contextlib.contextmanager
    def create_stream(path: Any, mode: str) -> Iterator[Any]:
        with original(path, mode) as raw:
            if mode == "wb":
                stream = WriteStream(raw, parts, operations, is_file=is_file)
                with own_error_of(stream):
                    yield stream
                    stream.close()
            else:
                yield ReadStream(raw, parts, operations)

    file_system.create_stream = create_stream
