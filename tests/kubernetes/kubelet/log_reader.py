"""What does `kubectl logs` get: which lines of which files, and what follows?

Source: the kubelet's pkg/kubelet/kuberuntime/logs: only the current file is read, and a follower
goes on in the next file when it is rotated; what was rotated away before is lost.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from tests.kubernetes.kubelet.log_files import CURRENT

_POLL_S = 0.05
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """The parameters of a request for logs."""

    follow: bool = False
    tail_lines: int | None = None
    since: str | None = None
    """RFC 3339; older lines are left out."""
    limit_bytes: int | None = None
    has_timestamps: bool = False

    @classmethod
    def parse(cls, parameters: dict[str, str], now: datetime) -> "LogQuery":
        def number(name: str) -> int | None:
            return int(parameters[name]) if name in parameters else None

        since = parameters.get("sinceTime")
        if (seconds := number("sinceSeconds")) is not None:
            since = (now - timedelta(seconds=seconds)).astimezone(UTC).isoformat()
        return cls(
            follow=parameters.get("follow") == "true",
            tail_lines=number("tailLines"),
            since=since,
            limit_bytes=number("limitBytes"),
            has_timestamps=parameters.get("timestamps") == "true",
        )


def read_log(folder: Path, query: LogQuery, is_over: Callable[[], bool]) -> Iterator[bytes]:
    """Pieces of the log; with `follow` until `is_over` and all is read."""
    pieces = _shown(_raw_lines(folder, query, is_over), query)
    left = query.limit_bytes
    for piece in pieces:
        if left is None:
            yield piece
            continue
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def last_lines(folder: Path, *, num_lines: int, most_bytes: int) -> str:
    """The end of a log, as a termination message has it."""
    query = LogQuery(tail_lines=num_lines)
    text = b"".join(read_log(folder, query, lambda: True))
    return text[-most_bytes:].decode(errors="replace")


def _raw_lines(folder: Path, query: LogQuery, is_over: Callable[[], bool]) -> Iterator[list[bytes]]:
    """Whole lines as they stand in the files, many at once; an empty list where nothing is new."""
    path = folder / CURRENT
    while (file := _opened(path)) is None:
        if is_over() or not query.follow:
            return
        time.sleep(_POLL_S)
    rest, following = b"", None
    try:
        if query.tail_lines is not None:
            file.seek(_start_of_tail(file.fileno(), query.tail_lines))
        while True:
            ended = is_over()
            chunk = file.read(_CHUNK_BYTES)
            if chunk:
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines
                continue
            if following is not None:  # nothing is added to the old file any more: all is read
                file.close()
                file, following = following, None
                continue
            following = _newer(path, file)
            if following is not None:
                continue
            if ended or not query.follow:
                return
            yield []
            time.sleep(_POLL_S)
    finally:
        file.close()
        if following is not None:
            following.close()


def _opened(path: Path) -> BinaryIO | None:
    """The file of that name, None while there is none: before the first, or amid a rotation."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _newer(path: Path, file: BinaryIO) -> BinaryIO | None:
    """The file that stands in the place of `file` since it was rotated away, if it was."""
    found = _opened(path)
    if found is None or os.fstat(found.fileno()).st_ino != os.fstat(file.fileno()).st_ino:
        return found
    found.close()
    return None


def _start_of_tail(fd: int, num_lines: int) -> int:
    """Where do the last lines begin? Parts of one line count as one."""
    size, found = os.fstat(fd).st_size, 0
    data = os.pread(fd, size, 0)
    place = len(data)
    while place > 0:
        start = data.rfind(b"\n", 0, place - 1) + 1
        if data[start:place].split(b" ", 3)[2:3] == [b"F"] or place == len(data):
            found += 1
            if found > num_lines:
                return place
        place = start
    return 0


def _shown(groups: Iterator[list[bytes]], query: LogQuery) -> Iterator[bytes]:
    """Without stream and mark, and without the time unless it is asked."""
    since = None if query.since is None else _comparable(query.since)
    starts_line = True
    for lines in groups:
        shown = []
        for line in lines:
            stamp, _, mark, text = (*line.split(b" ", 3), b"")[:4]
            if since is not None and _comparable(stamp.decode()) < since:
                continue
            if query.has_timestamps and starts_line:
                shown += [stamp, b" "]
            shown.append(text)
            starts_line = mark == b"F"
            if starts_line:
                shown.append(b"\n")
        yield b"".join(shown)


def _comparable(text: str) -> tuple[float, int]:
    """Seconds and nanoseconds of a time of RFC 3339."""
    base, _, rest = text.replace("Z", "+00:00").partition(".")
    digits = "".join(sign for sign in rest.partition("+")[0].partition("-")[0] if sign.isdigit())
    zone = rest[len(digits) :] if rest else ""
    moment = datetime.fromisoformat(base + zone if rest else base)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp(), int((digits or "0").ljust(9, "0")[:9])
