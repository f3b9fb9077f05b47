"""How is a leader followed of which only a log is there, and told something through files?

A log may be cut, rotated and told again from its beginning. What counts is the number of an event:
each is taken once and in order, and what is missing is asked for again. That something is missing
is seen by a later event, and at the end of a log by the next hello, which names the next event.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from broadgauge.messages.codec import DecodeError
from broadgauge.messages.frames import FrameReader
from broadgauge.messages.leader import (
    LEADER_EVENT,
    Attach,
    LeaderEvent,
    LeaderGivesUp,
    LeaderHello,
    LeaderOrder,
    Spooled,
    Stored,
)
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.log_stream import BEGINS
from broadgauge.platforms.led.handle import AttachedLink, LeaderStream, LinkLost
from broadgauge.specs.errors import PlatformError

SILENCE_LIMIT_S = waiting_limit_s(120.0)
"""A leader says hello every 15 seconds."""
ASK_AGAIN_AFTER_S = 90.0
"""For what was missed: an order takes up to a minute to reach a pod."""
MOST_WAITING = 256
"""Pieces of the log that wait to be read: a run is not faster than its tool."""


@dataclass(frozen=True, slots=True)
class _End:
    """Of the stream, and why."""

    why: str


class LogPump:
    """Reads a log in a thread, so that who waits for it can wait for a while only."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self._stream = stream
        self._pieces: queue.Queue[bytes | _End] = queue.Queue(MOST_WAITING)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="log of a pod")
        self._thread.start()

    def next(self, timeout_s: float) -> bytes | _End | None:
        """None: nothing came in time."""
        try:
            return self._pieces.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            return None

    def close(self) -> None:
        """Let go of it; the thread ends with the next piece."""
        self._is_closed.set()

    def _run(self) -> None:
        why = "the log ended"
        try:
            for piece in self._stream:
                if not self._put(piece):
                    return
        except (LinkLost, PlatformError) as loss:
            why = str(loss)
        self._put(_End(why))

    def _put(self, piece: bytes | _End) -> bool:
        while not self._is_closed.is_set():
            try:
                self._pieces.put(piece, timeout=1.0)
            except queue.Full:
                continue
            return True
        return False


@dataclass(slots=True, kw_only=True)
class LogLink:
    """A leader whose log is followed."""

    pump: LogPump
    tell: Callable[[LeaderOrder], None]
    """Puts an order where the leader finds it. Raises LinkLost."""
    hear_line: Callable[[str], None]
    """Takes what stands in the log beside the leader's events."""
    begins: Callable[[], None]
    """The log is read again: its lines come again."""
    why_ended: Callable[[], str | None]
    """What is known of a pod whose log says nothing more; None: it runs."""
    last: int
    """The last event that was received; at first the one that is stored."""
    generation: int
    """Of the jobs that it was given last, as far as the tool knows: a hello at the beginning of a
    log may be of a time before it had them."""
    in_full: Callable[[str], str] = str
    """The leader's last words, with what others say of its end where it can't know that."""
    hello: LeaderHello | None = None
    last_words: str | None = None
    _reader: FrameReader = field(default_factory=FrameReader)
    _events: deque[Spooled] = field(default_factory=deque)
    _heard_s: float = field(default_factory=time.monotonic)
    _asked_s: float | None = None
    """When it was asked for what is missing."""
    _loss: str | None = None
    _leader: str = ""
    """Who is heard; empty: not known yet."""
    _senders: set[str] = field(default_factory=set)
    """Names under which it has spoken."""

    def send(self, order: LeaderOrder) -> None:
        """Raises LinkLost. What is stored need not be told: nothing is kept for long in a pod."""
        if not isinstance(order, (Stored, Attach)):
            self.tell(order)

    def receive(self, timeout_s: float) -> Spooled | None:
        """The next event; None: none came in time. Raises LinkLost."""
        deadline_s = time.monotonic() + timeout_s
        while not self._events:
            if self._loss is not None:
                raise LinkLost(self._loss)
            if not self._hear(deadline_s - time.monotonic()) and time.monotonic() >= deadline_s:
                return None
        event = self._events.popleft()
        self.last = event.number
        return event

    def wait_for_hello(self, timeout_s: float) -> LeaderHello:
        """Raises LinkLost."""
        deadline_s = time.monotonic() + timeout_s
        while self.hello is None:
            if self._loss is not None:
                raise LinkLost(self._loss)
            if time.monotonic() > deadline_s:
                raise LinkLost(f"the leader did not answer for {timeout_s:g} s")
            self._hear(deadline_s - time.monotonic())
        return self.hello

    def _hear(self, timeout_s: float) -> bool:
        """Take in what comes next; False: nothing came in time."""
        piece = self.pump.next(min(timeout_s, 1.0))
        if piece is None:
            self._look_around()
            return False
        if isinstance(piece, _End):
            self._lose(piece.why)
            return True
        self._heard_s = time.monotonic()
        if piece == BEGINS:
            self._reader.forget_cut()
            self.begins()
            return True
        received, others = self._reader.feed(piece)
        for line in filter(None, map(bytes.strip, others)):
            self.hear_line(line.decode(errors="replace"))
        for each in received:
            try:
                event = LEADER_EVENT(each.message)
            except DecodeError:  # another program's frame
                continue
            self._senders.add(each.sender)
            self._take(event)
        if any(map(self._reader.has_closed, self._senders)):
            self._end()
        return True

    def _look_around(self) -> None:
        why = self.why_ended()
        if why is not None:
            self._lose(why)
        elif time.monotonic() - self._heard_s > SILENCE_LIMIT_S:
            self._lose(f"the leader said nothing for {SILENCE_LIMIT_S:g} s")

    def _end(self) -> None:
        """It has said its last. What is missing can't be asked for any more: it may have kept that
        elsewhere, so that these are no last words."""
        if self._num_missing:
            self._lose(f"it has ended, and its log lacks {self._num_missing} events")
            return
        self.last_words = self.last_words or "it has ended"
        self._lose(self.last_words)

    @property
    def _num_missing(self) -> int:
        """Events that it has told, as its last hello says, and that did not come."""
        next_number = 0 if self.hello is None else self.hello.next_number
        return max(0, next_number - self._newest - 1)

    @property
    def _newest(self) -> int:
        """The number of the last event that came."""
        return self._events[-1].number if self._events else self.last

    def _lose(self, why: str) -> None:
        if self._loss is None:
            self._loss = why

    def _take(self, event: LeaderEvent) -> None:
        if isinstance(event, (LeaderHello, Spooled)) and event.leader:
            self._leader = self._leader or event.leader
            if event.leader != self._leader:  # its numbers are not those of the one before
                self.last_words = self.last_words or "another leader began in its place"
                self._lose(self.last_words)
        if self._loss is not None:
            return
        if isinstance(event, LeaderHello):
            self._take_hello(event)
        elif isinstance(event, LeaderGivesUp):
            words = self.in_full(event.message)
            if not self._num_missing:  # else these are no last words: see `_end`
                self.last_words = words
            self._lose(words)
        elif isinstance(event, Spooled):
            self._take_spooled(event)

    def _take_hello(self, event: LeaderHello) -> None:
        known = self.generation if self.hello is None else self.hello.generation
        self.hello = replace(event, generation=max(event.generation, known))
        if event.next_number > self._newest + 1:
            self._ask_for(self._newest)

    def _take_spooled(self, event: Spooled) -> None:
        if event.number == self._newest + 1:
            self._events.append(event)
            self._asked_s = None
        elif event.number > self._newest + 1:
            self._ask_for(self._newest)

    def _ask_for(self, newest: int) -> None:
        """What was missed: a log was rotated before it was read, or a line was damaged."""
        now_s = time.monotonic()
        if self._asked_s is None or now_s - self._asked_s > ASK_AGAIN_AFTER_S:
            self._asked_s = now_s
            self.tell(Attach(after=newest))


_: type[LeaderStream] = LogLink


@dataclass(slots=True)
class AttachedLog:
    """A link to a leader's log, and the thread that reads it."""

    link: LogLink

    def close(self) -> None:
        """Let go; the pods live on."""
        self.link.pump.close()


__: type[AttachedLink] = AttachedLog
