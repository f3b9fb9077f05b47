"""Where do events wait for a tool that is not there?

A file of frames, one an event, appended before it is told to anybody. It is read again for a tool
that attaches, from the first event that the tool has not stored; what is stored goes in time.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broadgauge.messages.codec import encode
from broadgauge.messages.frames import FrameReader, FrameWriter
from broadgauge.messages.leader import LEADER_EVENT, Spooled

MAX_BYTES = 2**30
"""More than any run of the documented sizes says; a rank that floods must not fill the disk."""
MOST_STORED_BYTES = 2**24
"""Of events that the tool has stored, before the file is written again without them."""


class SpoolFull(Exception):  # noqa: N818  says what is so
    """No more can be kept until the tool has stored something."""


class Spool:
    """The events of one leader, numbered from 0."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where the file can't be made."""
        self.leader = secrets.token_hex(4)
        """Who tells them: another leader has another."""
        self._path = path
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        self._fd = os.open(path, flags, 0o600)
        self._frames = FrameWriter("spool")
        self._size = 0
        self._places: list[int] = []
        """Where each kept event begins in the file."""
        self.next_number = 0

    def append(self, generation: int, event: Any) -> Spooled:
        """Keep an event. Raises SpoolFull, and OSError for a full disk."""
        spooled = Spooled(
            number=self.next_number,
            generation=generation,
            event=encode(event),
            # Once: each byte more is one that a disk which fills up has not got.
            leader=self.leader if self.next_number == 0 else "",
        )
        data = self._frames.write(spooled)
        if self._size + len(data) > MAX_BYTES:
            raise SpoolFull(f"{self._size / 2**30:.1f} GiB of events wait for the tool")
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        self._places.append(self._size)
        self._size += len(data)
        self.next_number += 1
        return spooled

    def after(self, number: int) -> Iterator[Spooled]:
        """Those after this one that are kept, in their order."""
        skipped = max(0, number + 1 - self._first)
        if skipped >= len(self._places):
            return
        reader = FrameReader()
        with self._path.open("rb") as file:
            file.seek(self._places[skipped])
            while data := file.read(1 << 16):
                for received in reader.feed(data)[0]:
                    event = LEADER_EVENT(received.message)
                    if isinstance(event, Spooled) and event.number > number:
                        yield event

    def stored(self, number: int) -> None:
        """The tool has all up to this event. Raises OSError for a full disk."""
        num_stored = min(number + 1 - self._first, len(self._places))
        if num_stored <= 0:
            return
        if num_stored == len(self._places):
            os.ftruncate(self._fd, 0)
            self._places, self._size = [], 0
        elif self._places[num_stored] >= MOST_STORED_BYTES:
            self._drop(num_stored)

    @property
    def _first(self) -> int:
        """The number of the first event that is kept."""
        return self.next_number - len(self._places)

    def _drop(self, num_events: int) -> None:
        """Write the file again without so many."""
        dropped = self._places[num_events]
        draft = self._path.with_suffix(".new")
        with self._path.open("rb") as kept, open(draft, "xb", opener=_private) as file:
            kept.seek(dropped)
            shutil.copyfileobj(kept, file)
        draft.replace(self._path)
        os.close(self._fd)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        self._places = [place - dropped for place in self._places[num_events:]]
        self._size -= dropped

    def close(self) -> None:
        """Let go of the file; the leader's folder goes with the leader."""
        os.close(self._fd)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
