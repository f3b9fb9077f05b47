"""How does JSON from many senders survive pipes, files and logs that others write to?

A frame is one line of at most 8 KiB (container runtimes cut lines at 16):

    @bg2 <sender> <number> <part> <parts> <bytes> <crc32> <text>

`number` counts the frames of this sender from 0. A message longer than a frame is sent in `parts`
frames in a row; `number - part` is the message's own number. The checksum is over everything from
the sender to the text but itself and the length, so that no damaged frame passes for another one.
The text is ASCII JSON in which the four characters `@bg2` never stand, so that no part of a frame
reads as a frame. A frame of 0 parts is its sender's last and holds no text.

Lines may be cut, lost, doubled, joined, and other text may stand around a frame. What arrives whole
is read, once; what did not arrive is known by the numbers.
"""

import bisect
import json
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from broadgauge.messages.codec import JsonObject, encode

MAGIC = b"@bg2"
MAX_FRAME_BYTES = 8192
"""Of a line, its line feed counted."""
MAX_TEXT_BYTES = 8000
MAX_MESSAGE_BYTES = 4 * 2**20
MAX_PARTS = -(-MAX_MESSAGE_BYTES // MAX_TEXT_BYTES)
MAX_PENDING_BYTES = 8 * MAX_FRAME_BYTES
"""Of a line whose end has not come; a longer one is none of ours."""
_MOST_UNFINISHED = 8
"""Messages of one sender whose other parts may still come, in a log that is read again."""
_MOST_NESTED = 64
"""Of objects and lists in a message: ours have 10, and what is read must be written on."""
_HEADER = re.compile(
    rb"@bg2 (?P<counted>(?P<sender>[A-Za-z0-9._-]{1,64}) (?P<number>\d{1,12}) (?P<part>\d{1,4}) "
    rb"(?P<parts>\d{1,4})) (?P<bytes>\d{1,4}) (?P<crc>[0-9a-f]{8}) "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A whole message."""

    sender: str
    number: int
    """Of its first frame."""
    message: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFrames:
    """Frames of one sender that never came, by their numbers."""

    sender: str
    first: int
    last: int | None
    """None: the sender's last frame has not come, so nobody knows how many there were."""

    def __str__(self) -> str:
        if self.last == self.first:
            return f"frame {self.first} of {self.sender}"
        until = "on" if self.last is None else f"to {self.last}"
        return f"frames {self.first} {until} of {self.sender}"


def unique_sender(role: str) -> str:
    """`rank3-5f2a9c31`: another in each life of the process, as numbers begin again with it."""
    return f"{role}-{os.urandom(4).hex()}"


def plain_line(text: str) -> str:
    """Text of others as one line of a log that holds frames, too: none of it reads as a frame.

    Control and hidden characters are written as Python escapes them.
    """
    shown = "".join(
        each if each.isprintable() or each == "\t" else each.encode("unicode_escape").decode()
        for each in text
    )
    return shown.replace(MAGIC.decode(), f"\\x{MAGIC[0]:02x}{MAGIC[1:].decode()}")


class FrameWriter:
    """Numbers the frames of one sender."""

    def __init__(self, sender: str, *, is_shared: bool = False) -> None:
        """`is_shared`: others write to the same stream, so each frame begins a line of its own."""
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", sender), f"no name for a sender: {sender!r}"
        self._sender = sender.encode()
        self._before = b"\n" if is_shared else b""
        self._number = 0

    def write(self, message: Any) -> bytes:
        """The lines of a message: a dataclass, or what json.dumps takes.

        Raises ValueError for NaN, infinity, and what is longer than MAX_MESSAGE_BYTES.
        """
        text = _ENCODER.encode(encode(message)).replace("@bg2", "\\u0040bg2").encode()
        if len(text) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(text)} bytes is longer than {MAX_MESSAGE_BYTES}")
        starts = range(0, len(text), MAX_TEXT_BYTES)
        return b"".join(
            self._frame(part, len(starts), text[start : start + MAX_TEXT_BYTES])
            for part, start in enumerate(starts)
        )

    def close(self) -> bytes:
        """The sender's last frame: a reader that has it knows how many there were."""
        return self._frame(0, 0, b"")

    def _frame(self, part: int, parts: int, text: bytes) -> bytes:
        counted = b"%b %d %d %d" % (self._sender, self._number, part, parts)
        self._number += 1
        crc = zlib.crc32(text, zlib.crc32(counted))
        return b"%b@bg2 %b %d %08x %b\n" % (self._before, counted, len(text), crc, text)


@dataclass(frozen=True, slots=True)
class _Frame:
    sender: str
    number: int
    part: int
    parts: int
    text: bytes
    end: int
    """Where it ends in its line."""


class FrameReader:
    """Feed bytes as they come; get whole messages and the other text."""

    def __init__(self) -> None:
        self._pending = b""
        self._senders: dict[str, _Sender] = {}

    def feed(self, data: bytes) -> tuple[list[Received], list[bytes]]:
        """The messages, and the text around them, of the lines that `data` completed."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        if len(self._pending) > MAX_PENDING_BYTES:
            lines.append(self._pending)
            self._pending = b""
        messages: list[Received] = []
        others: list[bytes] = []
        for line in lines:
            self._take_line(line, messages, others)
        return messages, others

    def forget_cut(self) -> None:
        """The stream is read from its beginning again: the line that was cut comes whole."""
        self._pending = b""

    def finish(self) -> tuple[list[Received], list[bytes]]:
        """Nothing more comes: what of the last line, whose end is missing?"""
        return self.feed(b"\n") if self._pending else ([], [])

    def has_closed(self, sender: str) -> bool:
        """Has its last frame come?"""
        return sender in self._senders and self._senders[sender].is_closed

    def lost(self) -> tuple[LostFrames, ...]:
        """Which frames have not come, of the senders that were heard at all?"""
        return tuple(
            lost for name in sorted(self._senders) for lost in self._senders[name].lost(name)
        )

    def overtaken(self) -> tuple[LostFrames, ...]:
        """Of these, the ones that a later frame has come after: where order is kept, they won't."""
        return tuple(lost for lost in self.lost() if lost.last is not None)

    def _take_line(self, line: bytes, messages: list[Received], others: list[bytes]) -> None:
        rest = 0
        for start, frame in _frames_in(line):
            if line[rest:start].strip():
                others.append(line[rest:start])
            rest = frame.end
            message = self._senders.setdefault(frame.sender, _Sender()).take(frame)
            if message is not None:
                messages.append(message)
        if rest == 0 or line[rest:].strip():
            others.append(line[rest:])


def _frames_in(line: bytes) -> Iterator[tuple[int, _Frame]]:
    """The intact frames of a line, with where each begins. A damaged one is stepped over."""
    start = line.find(MAGIC)
    while start >= 0:
        frame = _read_frame(line, start)
        if frame is not None:
            yield start, frame
        start = line.find(MAGIC, start + len(MAGIC) if frame is None else frame.end)


def _read_frame(line: bytes, start: int) -> _Frame | None:
    match = _HEADER.match(line, start)
    if match is None:
        return None
    end = match.end() + int(match["bytes"])
    text = line[match.end() : end]
    if len(line) < end or zlib.crc32(text, zlib.crc32(match["counted"])) != int(match["crc"], 16):
        return None
    number, part, parts = int(match["number"]), int(match["part"]), int(match["parts"])
    if part > number or part >= max(parts, 1) or parts > MAX_PARTS:
        return None
    return _Frame(match["sender"].decode(), number, part, parts, text, end)


@dataclass(slots=True)
class _Sender:
    """What came of one sender."""

    next: int = 0
    """One more than the highest number seen."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Numbers below `next` that have not come: first and last of each row, in order."""
    is_closed: bool = False
    unfinished: dict[int, dict[int, bytes]] = field(default_factory=dict)
    """By message: the parts that came."""

    def take(self, frame: _Frame) -> Received | None:
        """The message that this frame completes, if it does."""
        if not self._is_new(frame.number):
            return None
        if frame.parts == 0:
            self.is_closed = True
            return None
        number, text = frame.number - frame.part, frame.text
        if frame.parts > 1:
            parts = self.unfinished.setdefault(number, {})
            parts[frame.part] = text
            if any(part not in parts for part in range(frame.parts)):
                if len(self.unfinished) > _MOST_UNFINISHED:
                    del self.unfinished[min(self.unfinished)]
                return None
            del self.unfinished[number]
            text = b"".join(parts[part] for part in range(frame.parts))
        message = _object_of(text)
        if message is None:
            return None
        return Received(sender=frame.sender, number=number, message=message)

    def _is_new(self, number: int) -> bool:
        if number >= self.next:
            if number > self.next:
                self.gaps.append((self.next, number - 1))
            self.next = number + 1
            return True
        place = bisect.bisect_right(self.gaps, number, key=lambda gap: gap[0]) - 1
        if place < 0 or number > self.gaps[place][1]:
            return False
        first, last = self.gaps[place]
        halves = ((first, number - 1), (number + 1, last))
        self.gaps[place : place + 1] = [half for half in halves if half[0] <= half[1]]
        return True

    def lost(self, name: str) -> Iterator[LostFrames]:
        for first, last in self.gaps:
            yield LostFrames(sender=name, first=first, last=last)
        if not self.is_closed:
            yield LostFrames(sender=name, first=self.next, last=None)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _object_of(text: bytes) -> JsonObject | None:
    try:
        message = _DECODER.decode(text.decode("ascii"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and _is_shallow(message) else None


def _is_shallow(message: JsonObject) -> bool:
    """Is it nested no deeper than any reader can follow? Without a call for each level."""
    level: list[Any] = [message]
    for _ in range(_MOST_NESTED):
        parts = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for part in parts for item in part if isinstance(item, (dict, list))]
        if not level:
            return True
    return False
