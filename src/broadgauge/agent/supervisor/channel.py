"""How does a process that must never wait write and read frames on a descriptor?"""

import os
from collections import deque
from contextlib import suppress
from typing import Any

from broadgauge.messages.codec import JsonObject
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender

_READ_BYTES = 1 << 16


class Outlet:
    """Frames to a non-blocking descriptor; what does not fit waits here."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.is_open = True
        self._waiting: deque[bytes] = deque()
        self._frames = FrameWriter(unique_sender("agent"))

    @property
    def has_waiting(self) -> bool:
        """Is something left to write once the descriptor takes more?"""
        return self.is_open and bool(self._waiting)

    def send(self, message: Any) -> None:
        """Write a message as far as it goes. Raises ValueError for one that is too long."""
        self._waiting.append(self._frames.write(message))
        self.flush()

    def flush(self) -> None:
        """Write what waits as far as it goes; a reader that is gone gets nothing more."""
        while self._waiting and self.is_open:
            data = self._waiting.popleft()
            try:
                written = os.write(self.fd, data)
            except BlockingIOError:
                written = 0
            except (BrokenPipeError, ConnectionResetError):
                self.is_open = False
                return
            if written < len(data):
                self._waiting.appendleft(data[written:])
                return

    def close(self) -> None:
        """Let go of the descriptor; safe to call twice."""
        self.is_open = False
        if self.fd >= 0:
            with suppress(OSError):
                os.close(self.fd)
            self.fd = -1


class Inlet:
    """Frames from a non-blocking descriptor, and the lines that are none."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.is_open = True
        self._frames = FrameReader()

    def read(self) -> tuple[list[JsonObject], list[bytes]]:
        """All that is there now, at most 16 reads of it; `is_open` turns False at its end."""
        messages: list[JsonObject] = []
        others: list[bytes] = []
        for _ in range(16):
            try:
                data = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data = b""
            if not data:
                self.is_open = False
                break
            more_messages, more_others = self._frames.feed(data)
            messages += [received.message for received in more_messages]
            others += more_others
        return messages, others

    def close(self) -> None:
        """Let go of the descriptor; safe to call twice."""
        self.is_open = False
        if self.fd >= 0:
            with suppress(OSError):
                os.close(self.fd)
            self.fd = -1
