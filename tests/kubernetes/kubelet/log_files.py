"""How is a container's output kept: CRI's line format, rotated by size, a few files?

Source: the Container Runtime Interface's log format ("2016-10-06T00:17:09.669794202Z stdout F
text"), and containerd's limit of a line, 16 KiB, beyond which it is marked P for partial.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

MAX_LINE_BYTES = 16 << 10
CURRENT = "log"


def timestamp(now_ns: int) -> bytes:
    """RFC 3339 with nine digits, in UTC."""
    seconds, nanoseconds = divmod(now_ns, 1_000_000_000)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{nanoseconds:09d}Z".encode()


@dataclass(kw_only=True)
class LogWriter:
    """Writes one container's log, one launch of it, into `<folder>/log`."""

    folder: Path
    max_bytes: int
    max_files: int
    """The current one counts."""
    _fd: int = -1
    _size_bytes: int = 0
    _is_writing: bool = False
    _rotates_soon: bool = False
    _parts: dict[str, bytes] = field(default_factory=dict)
    """What each stream has said since its last newline."""

    def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self.folder / CURRENT, flags, 0o644)
        self._size_bytes = os.fstat(self._fd).st_size

    def feed(self, stream: str, data: bytes) -> None:
        """Take what a stream said; whole lines are written."""
        *lines, rest = (self._parts.get(stream, b"") + data).split(b"\n")
        self._write(stream, lines)
        while len(rest) > MAX_LINE_BYTES:
            self._write(stream, [rest[:MAX_LINE_BYTES]], mark=b"P")
            rest = rest[MAX_LINE_BYTES:]
        self._parts[stream] = rest

    def finish(self, stream: str) -> None:
        """The stream has ended: a last line without its newline is a partial one."""
        if rest := self._parts.pop(stream, b""):
            self._write(stream, [rest], mark=b"P")

    def rotate_now(self) -> None:
        """From a signal's handler: at once, or after the lines that are being written."""
        if self._is_writing:
            self._rotates_soon = True
        else:
            self.rotate()

    def rotate(self) -> None:
        """Begin a new file; the oldest beyond `max_files` are lost."""
        current = self.folder / CURRENT
        current.rename(self.folder / f"{CURRENT}.{time.time_ns()}")
        os.close(self._fd)
        self.open()
        old = sorted(self.folder.glob(f"{CURRENT}.*"))
        for path in old[: max(0, len(old) - (self.max_files - 1))]:
            path.unlink()

    def _write(self, stream: str, lines: list[bytes], mark: bytes = b"F") -> None:
        self._is_writing = True
        self._write_lines(stream, lines, mark)
        self._is_writing = False
        if self._rotates_soon:
            self._rotates_soon = False
            self.rotate()

    def _write_lines(self, stream: str, lines: list[bytes], mark: bytes) -> None:
        head = b"%s %s " % (timestamp(time.time_ns()), stream.encode())
        for line in lines:
            pieces = [
                line[start : start + MAX_LINE_BYTES]
                for start in range(0, len(line), MAX_LINE_BYTES)
            ] or [b""]
            marks = [b"P"] * (len(pieces) - 1) + [mark]
            text = b"".join(
                b"%s%s %s\n" % (head, tag, piece) for tag, piece in zip(marks, pieces, strict=True)
            )
            if self._size_bytes and self._size_bytes + len(text) > self.max_bytes:
                self.rotate()
            view = memoryview(text)
            while view:
                view = view[os.write(self._fd, view) :]
            self._size_bytes += len(text)
