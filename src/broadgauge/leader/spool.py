"""Where do events wait for a tool that is not there?

A file of frames, one an event, appended before it is told to anybody. It is read again for a tool
that attaches, from the first event that the tool has not stored.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broadgauge.messages.codec import encode
from broadgauge.messages.frames import FrameReader, FrameWriter
from broadgauge.messages.leader import LEADER_EVENT, Spooled

MAX_BYTES = 2**30
"""More than any run of the documented sizes says; a rank that floods must not fill the disk."""


class SpoolFull(Exception):  # noqa: N818  says what is so
    """No more can be kept until the tool has stored something."""


class Spool:
    """The events of one leader, numbered from 0."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where the file can't be made."""
        self._path = path
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        self._fd = os.open(path, flags, 0o600)
        self._frames = FrameWriter("spool")
        self._size = 0
        self.next_number = 0

    def append(self, generation: int, event: Any) -> Spooled:
        """Keep an event. Raises SpoolFull, and OSError for a full disk."""
        spooled = Spooled(number=self.next_number, generation=generation, event=encode(event))
        data = self._frames.write(spooled)
        if self._size + len(data) > MAX_BYTES:
            raise SpoolFull(f"{self._size / 2**30:.1f} GiB of events wait for the tool")
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        self._size += len(data)
        self.next_number += 1
        return spooled

    def after(self, number: int) -> Iterator[Spooled]:
        """Those after this one that are kept, in their order."""
        reader = FrameReader()
        with self._path.open("rb") as file:
            while data := file.read(1 << 16):
                for received in reader.feed(data)[0]:
                    event = LEADER_EVENT(received.message)
                    if isinstance(event, Spooled) and event.number > number:
                        yield event

    def stored(self, number: int) -> None:
        """The tool has all up to this event: where that is everything, the file begins anew."""
        if number == self.next_number - 1:
            os.ftruncate(self._fd, 0)
            self._size = 0

    def close(self) -> None:
        """Let go of the file; the leader's folder goes with the leader."""
        os.close(self._fd)
