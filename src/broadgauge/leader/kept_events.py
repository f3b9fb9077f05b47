"""Where are a leader's events when its pod is gone? In files on a volume, one a leader.

`python broadgauge.zip kept-events FOLDER AFTER` tells those of the newest file as a leader would,
from the event after AFTER on, to whoever reads the log.
"""

import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from broadgauge.messages.codec import DecodeError
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.leader import LEADER_EVENT, LeaderHello, Spooled

WRONG_CALL = 2
UNREADABLE = 1
_NAME = re.compile(r"events-(\d{1,9})")
_BLOCK_BYTES = 1 << 16


def next_file(folder: Path) -> Path:
    """Of a leader that begins: a number that none had. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"events-{_newest_number(folder) + 1}"


def read_kept(path: Path) -> Iterator[Spooled]:
    """In their order, up to the first that is missing. Raises OSError."""
    reader, expected = FrameReader(), None
    with path.open("rb") as file:
        while data := file.read(_BLOCK_BYTES):
            for received in reader.feed(data)[0]:
                try:
                    event = LEADER_EVENT(received.message)
                except DecodeError:
                    continue
                if not isinstance(event, Spooled):
                    continue
                if expected is not None and event.number != expected:
                    return
                expected = event.number + 1
                yield event


def main() -> int:
    """Hello, the events, and the end."""
    try:
        folder, after = Path(sys.argv[1]), int(sys.argv[2])
    except (IndexError, ValueError):
        sys.stderr.write("kept-events FOLDER AFTER: a folder and a number\n")
        return WRONG_CALL
    try:
        newest = _newest_number(folder)
        if newest < 0:
            sys.stderr.write(f"broadgauge: {folder}: no leader has kept anything there\n")
        _tell(folder / f"events-{newest}" if newest >= 0 else Path(os.devnull), after)
    except OSError as error:
        sys.stderr.write(f"broadgauge: {error.filename or folder}: {error.strerror or error}\n")
        return UNREADABLE
    return 0


def _tell(path: Path, after: int) -> None:
    """As a leader does in a log: a hello says which event is the next, those before it stand before
    it. An empty file is told as a leader's that had no jobs yet. Raises OSError."""
    first = next(read_kept(path), None)
    newest = deque(read_kept(path), maxlen=1)
    generation, last = (newest[0].generation, newest[0].number) if newest else (-1, -1)
    frames, output = FrameWriter(unique_sender("kept"), is_shared=True), sys.stdout.buffer
    hello = LeaderHello(
        version=Path(sys.path[0]).name,
        pid=os.getpid(),
        generation=generation,
        next_number=min(after, last) + 1,
        leader="" if first is None else first.leader,
    )
    output.write(frames.write(hello))
    for event in read_kept(path):
        if after < event.number <= last:
            output.write(frames.write(event))
    output.write(frames.write(replace(hello, next_number=last + 1)))
    output.write(frames.close())
    output.flush()


def _newest_number(folder: Path) -> int:
    """-1: there is none. Raises OSError."""
    try:
        found = [_NAME.fullmatch(path.name) for path in folder.iterdir()]
    except FileNotFoundError:
        return -1
    return max((int(each[1]) for each in found if each is not None), default=-1)
