"""How does the tool hear a leader, through whatever stream joins them?"""

import os
import select
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.leader import (
    LEADER_EVENT,
    Attach,
    LeaderEvent,
    LeaderGivesUp,
    LeaderHello,
    LeaderOrder,
    Spooled,
)
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.led.handle import LeaderStream, LinkLost

READ_BYTES = 1 << 16
SILENCE_LIMIT_S = waiting_limit_s(30.0)
"""A leader says every five seconds that it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteStream:
    """Two descriptors: of a socket, or of ssh's output and input."""

    reading: int
    writing: int

    def close(self) -> None:
        """Both, or the one."""
        for fd in {self.reading, self.writing}:
            with suppress(OSError):
                os.close(fd)


class LeaderLink:
    """A leader that a stream leads to."""

    def __init__(self, stream: ByteStream, after: int) -> None:
        """`after`: the last event that is stored here; −1: none."""
        self._stream = stream
        self._frames = FrameWriter(unique_sender("tool"))
        self._reader = FrameReader()
        self._events: deque[Spooled] = deque()
        self._heard_s = time.monotonic()
        self._gap: str | None = None
        """What did not come, after the events that wait to be received."""
        self.hello: LeaderHello | None = None
        self.last_words: str | None = None
        """Why the leader ends; None: it has not said that it does."""
        self.last = after
        """The last event that was received."""
        self._is_closed = False
        self.send(Attach(after=after))

    def send(self, order: LeaderOrder) -> None:
        """Raises LinkLost."""
        view = memoryview(self._frames.write(order))
        try:
            while view:
                view = view[os.write(self._stream.writing, view) :]
        except OSError as error:
            raise LinkLost(f"the leader can't be reached: {error.strerror or error}") from error

    def receive(self, timeout_s: float) -> Spooled | None:
        """The next event; None: none came in time. Raises LinkLost."""
        deadline_s = time.monotonic() + timeout_s
        while not self._events:
            if self._gap is not None:
                raise LinkLost(self._gap)
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return None
            self._read(left_s)
        event = self._events.popleft()
        self.last = event.number
        return event

    def wait_for_hello(self, timeout_s: float) -> LeaderHello:
        """Raises LinkLost."""
        deadline_s = time.monotonic() + timeout_s
        while self.hello is None:
            if self._gap is not None:
                raise LinkLost(self._gap)
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise LinkLost(f"the leader did not answer for {timeout_s:g} s")
            self._read(left_s)
        return self.hello

    def close(self) -> None:
        """Let go; the leader lives on. Once: the stream's numbers may be another's then."""
        if not self._is_closed:
            self._is_closed = True
            self._stream.close()

    def _read(self, timeout_s: float) -> None:
        patience_s = min(timeout_s, SILENCE_LIMIT_S)
        readable, _, _ = select.select([self._stream.reading], [], [], patience_s)
        if not readable:
            if time.monotonic() - self._heard_s > SILENCE_LIMIT_S:
                raise LinkLost(f"the leader said nothing for {SILENCE_LIMIT_S:g} s")
            return
        try:
            data = os.read(self._stream.reading, READ_BYTES)
        except OSError as error:
            raise LinkLost(f"the leader does not answer: {error.strerror or error}") from error
        if not data:
            raise LinkLost("the connection to the leader ended")
        self._heard_s = time.monotonic()
        came = self._reader.feed(data)[0]
        lost = next(iter(self._reader.overtaken()), None)
        for received in came:
            if lost is None or received.number < lost.first:
                self._take(LEADER_EVENT(received.message))
        if lost is not None and self._gap is None:
            self._gap = f"{lost} did not come"

    def _take(self, event: LeaderEvent) -> None:
        """Where something before it did not come, nothing more is taken: it is asked for again."""
        if isinstance(event, LeaderHello):
            self.hello = event
        if isinstance(event, LeaderGivesUp):
            self.last_words = self._gap = event.message
        if not isinstance(event, Spooled) or event.number <= self._newest:
            return
        newest = self._newest
        if newest >= 0 and event.number > newest + 1 and self._gap is None:
            missing = event.number - newest - 1
            self._gap = f"{missing} of the leader's events did not come, from number {newest + 1}"
        if self._gap is None:
            self._events.append(event)

    @property
    def _newest(self) -> int:
        """An event that is told twice is taken once."""
        return self._events[-1].number if self._events else self.last


_: type[LeaderStream] = LeaderLink
