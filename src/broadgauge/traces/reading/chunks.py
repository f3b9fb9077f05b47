"""Which bytes of a large JSON file are whole events, without holding the file?

A cut is a guess that the decoder proves: the bytes of an array up to a place, closed with `]`, are
JSON if and only if the place is between two of its items. Where the guess was wrong, the bytes are
scanned. So each byte is decoded at most twice and scanned at most once.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

CHUNK_BYTES = 1 << 20
"""Decoded at once: some 4,000 events, which stay within the processor's cache."""
LARGEST_EVENT_BYTES = 256 << 20
LARGEST_HEAD_BYTES = 64 << 20
_BOUNDARY = re.compile(rb"\}\s*,\s*\{")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_LAST_BYTES = 64 << 10
_RAW = msgspec.json.Decoder(msgspec.Raw)
_ESCAPES = re.compile(rb'\\+"')

Decoded = TypeVar("Decoded")


class NotJsonError(ValueError):
    """The bytes are no JSON, or not of this form: what, and where in the file."""

    def __init__(self, what: str, at_byte: int) -> None:
        super().__init__(what)
        self.what = what
        self.at_byte = at_byte


class TraceBytes(Protocol):
    """A file, or what a decompressor gives."""

    def read(self, size: int, /) -> bytes: ...


@dataclass
class Head:
    """What stands around the events, filled while they are read."""

    before: bytes = b""
    """Up to the array's `[`, without it; empty where the file is one array."""
    after: bytes = field(default=b"")
    """From behind the array's `]`."""

    def around(self, after: bytes | None = None) -> bytes:
        """The document without its events; `after` for what is not read yet."""
        return self.before + b"[]" + (self.after if after is None else after)


@dataclass
class _Reading:
    """Where in the file the reader stands."""

    stream: TraceBytes
    buffer: bytes = b""
    at_byte: int = 0
    """Of the buffer's first byte."""
    is_at_end: bool = False

    def more(self, size: int) -> None:
        data = self.stream.read(size)
        self.is_at_end = not data
        self.buffer += data

    def drop(self, size: int) -> None:
        self.at_byte += size
        self.buffer = self.buffer[size:]


def decoded_chunks(
    stream: TraceBytes,
    decode: Callable[[bytes], Decoded],
    head: Head,
    *,
    repair: Callable[[bytes], Decoded],
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Decoded]:
    """Decodes the events of a trace, some thousand at once; fills `head` by the way.

    `decode` takes a JSON array of events and raises ValueError where it is none; `repair` is asked
    where the bytes are known to be one and `decode` refuses them. Raises NotJsonError.
    """
    reading = _Reading(stream)
    _skip_head(reading, head, chunk_bytes)
    is_guessing = True
    while True:
        wanted = max(chunk_bytes, len(reading.buffer))  # doubles while no event ends
        if not reading.is_at_end:
            reading.more(wanted)
        if is_guessing and not reading.is_at_end:
            cut = _guess(reading.buffer)
            found = None if cut is None else _try(decode, _array(reading.buffer, cut))
            if cut is not None and found is not None:
                yield found
                reading.drop(cut + 1)
                continue
            is_guessing = cut is None
        cut, is_closed = _scan(reading.buffer)
        if is_closed:
            yield _decode(decode, repair, reading.buffer[:cut], reading.at_byte)
            reading.drop(cut + 1)
            break
        if reading.is_at_end:
            raise NotJsonError("it ends in the middle", reading.at_byte + len(reading.buffer))
        if cut > 0:
            yield _decode(decode, repair, reading.buffer[:cut], reading.at_byte)
            reading.drop(cut + 1)
        elif len(reading.buffer) > LARGEST_EVENT_BYTES:
            raise NotJsonError("one event of more than 256 MiB", reading.at_byte)
    _read_tail(reading, head)


def _skip_head(reading: _Reading, head: Head, chunk_bytes: int) -> None:
    """Up to and with the `[` of the events."""
    reading.more(min(chunk_bytes, 1 << 16))
    text = reading.buffer.lstrip(_BYTE_ORDER_MARK + b" \t\r\n")
    if text.startswith(b"["):
        reading.drop(len(reading.buffer) - len(text) + 1)
        return
    if not text.startswith(b"{"):
        raise NotJsonError("it does not begin with { or [", 0)
    searched = 0
    while True:
        for match in _KEY.finditer(reading.buffer, searched):
            before = reading.buffer[: match.end() - 1].lstrip(_BYTE_ORDER_MARK)
            if _try(_RAW.decode, before + b"[]}") is not None:
                head.before = before
                reading.drop(match.end())
                return
            searched = match.end()
        if reading.is_at_end:
            raise NotJsonError('it has no "traceEvents"', 0)
        if len(reading.buffer) > LARGEST_HEAD_BYTES:
            raise NotJsonError('no "traceEvents" in its first 64 MiB', 0)
        searched = max(searched, len(reading.buffer) - 64)
        reading.more(max(chunk_bytes, len(reading.buffer)))


def _read_tail(reading: _Reading, head: Head) -> None:
    """What follows the events; as much of it as is worth keeping."""
    while not reading.is_at_end and len(reading.buffer) <= LARGEST_HEAD_BYTES:
        reading.more(max(CHUNK_BYTES, len(reading.buffer)))
    if reading.is_at_end:
        head.after = reading.buffer
    if head.before and not reading.buffer.rstrip().endswith(b"}"):
        raise NotJsonError("it ends in the middle", reading.at_byte + len(reading.buffer))


def _try(decode: Callable[[bytes], Decoded], text: bytes) -> Decoded | None:
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return None


def _decode(
    decode: Callable[[bytes], Decoded],
    repair: Callable[[bytes], Decoded],
    items: bytes,
    at_byte: int,
) -> Decoded:
    text = _array(items, len(items))
    found = _try(decode, text)
    if found is not None:
        return found
    try:
        return repair(text)
    except ValueError as error:
        found_at = getattr(error, "pos", 0)  # of json.JSONDecodeError
        raise NotJsonError(f"no JSON: {error}", at_byte + max(0, found_at - 1)) from error


def _array(items: bytes, cut: int) -> bytes:
    """The items before the cut as an array, copied once: a slice and two sums copy thrice."""
    return b"".join((b"[", memoryview(items)[:cut], b"]"))


def _guess(buffer: bytes) -> int | None:
    """The comma of the last `}, {`: mostly between two events, sometimes within one."""
    last = None
    for match in _BOUNDARY.finditer(buffer, max(0, len(buffer) - _LAST_BYTES)):
        last = match
    return None if last is None else buffer.index(b",", last.start())


def _scan(buffer: bytes) -> tuple[int, bool]:
    """The last comma between two events, or the `]` that closes them (then True); 0: neither."""
    text = np.frombuffer(buffer, dtype=np.uint8)
    depth_of = np.zeros(256, dtype=np.int8)
    depth_of[list(b"{[")] = 1
    depth_of[list(b"}]")] = -1
    is_structural = depth_of != 0
    is_structural[ord(",")] = True
    places = np.flatnonzero(is_structural[text])
    places = places[np.searchsorted(_quotes(buffer, text), places) % 2 == 0]
    kinds = text[places]
    depths = np.cumsum(depth_of[kinds], dtype=np.int64)
    closing = np.flatnonzero(depths < 0)
    if len(closing):
        return int(places[closing[0]]), True
    commas = places[(depths == 0) & (kinds == ord(","))]
    return (int(commas[-1]) if len(commas) else 0), False


def _quotes(buffer: bytes, text: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Places of the quotes that open and close strings."""
    quotes = np.flatnonzero(text == ord('"'))
    if b'\\"' not in buffer:
        return quotes
    escaped = [
        match.end() - 1
        for match in _ESCAPES.finditer(buffer)
        if (match.end() - match.start()) % 2 == 0
    ]
    return np.setdiff1d(quotes, escaped, assume_unique=True)
