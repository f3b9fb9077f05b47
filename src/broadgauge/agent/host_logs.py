"""What do ranks leave on a host's disk, and what if it takes no more?"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from broadgauge.messages.agent import Event, LogText, RankExited, RankSaid
from broadgauge.messages.codec import JsonObject
from broadgauge.messages.vocabulary import ErrorKind

MAX_LOG_TEXT_BYTES = 2**19
"""Of a file: its end. As JSON it is six times as long at the most, which one message may be."""
MAX_LOG_FILES = 1000
NCCL_LOG = ".nccl."
"""In the names of NCCL's logs: platforms/rank_environment.py."""
LEAST_FREE_BYTES = 2**16
"""With less than a few pages free a log ends in the midst of its last words."""


def failed_rank(event: Event) -> int | None:
    """Whose failure does it tell of? None: of nobody's."""
    match event:
        case RankExited(was_told_to=False):
            return event.rank
        case RankSaid(message=message) if message.get("type") == "failed":
            return event.rank
        case _:
            return None


def is_full(folder: str) -> bool:
    """Can no log be written there, so that a rank's own words are lost?"""
    with suppress(OSError):
        space = os.statvfs(folder)
        return space.f_bavail * space.f_frsize < LEAST_FREE_BYTES
    return False


def no_space(folder: str) -> JsonObject:
    """In the failed rank's place: it may not have been able to say it."""
    where = Path(folder).parents[1]
    words = f"{socket.gethostname()}: {where}: {os.strerror(errno.ENOSPC)}"
    return {"type": "failed", "kind": ErrorKind.NO_SPACE.value, "message": words}


class LogTeller:
    """Tells what a launch writes into this folder, each byte once.

    What NCCL says of its way is judged after a trial, while the ranks live on; all the rest comes
    when they have ended.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told_bytes: dict[str, int] = {}
        """By file: how much of it is told."""

    def of_nccl(self) -> Iterator[LogText]:
        """The whole lines that NCCL has added to its logs; of much the beginning."""
        for path in self._files():
            if NCCL_LOG not in path.name:
                continue
            with suppress(OSError):
                begin = self._told_bytes.get(path.name, 0)
                data, _, _ = _read(path, begin).rpartition(b"\n")
                if data:
                    self._told_bytes[path.name] = begin + len(data) + 1
                    yield _log_text(path, data + b"\n", 0)

    def rest(self) -> Iterator[LogText]:
        """All that is not told yet, of much the end; the files are gone then."""
        told_bytes, self._told_bytes = self._told_bytes, {}
        for number, path in enumerate(self._files()):
            with suppress(OSError):
                told = told_bytes.get(path.name, 0)
                begin = max(told, path.stat().st_size - MAX_LOG_TEXT_BYTES)
                data = _read(path, begin)
                if data and number < MAX_LOG_FILES:
                    yield _log_text(path, data, begin - told)
                path.unlink()

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path.is_file())
        except OSError:
            return []


def _read(path: Path, begin: int) -> bytes:
    """Raises OSError."""
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(MAX_LOG_TEXT_BYTES)


def _log_text(path: Path, data: bytes, left_out_bytes: int) -> LogText:
    text = data.decode(errors="replace")
    return LogText(name=path.name, text=text, left_out_bytes=left_out_bytes)
