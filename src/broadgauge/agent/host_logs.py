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


def take_log_texts(folder: Path) -> Iterator[LogText]:
    """What a launch has written there; it is gone then."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return
    for number, path in enumerate(paths):
        with suppress(OSError):
            with path.open("rb") as file:
                left_out = max(0, path.stat().st_size - MAX_LOG_TEXT_BYTES)
                file.seek(left_out)
                text = file.read(MAX_LOG_TEXT_BYTES).decode(errors="replace")
            if text and number < MAX_LOG_FILES:
                yield LogText(name=path.name, text=text, left_out_bytes=left_out)
            path.unlink()
