"""How does a line of JSON from a rank survive a pipe, a file or a log that others write to?

A frame is one line: `@bg1 <bytes> <crc32> <json>`, the length and checksum being of the JSON's
UTF-8 text. Whatever is not a whole, intact frame is passed through as ordinary output.
"""

import json
import re
import zlib
from typing import Any

MAX_FRAME_BYTES = 4 * 2**20
_FRAME = re.compile(rb"@bg1 (\d{1,8}) ([0-9a-f]{8}) (.*)", re.DOTALL)


def encode_frame(message: dict[str, Any]) -> bytes:
    """One line with its newline. Raises ValueError for NaN, infinity, and over-long messages."""
    text = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {len(text)} bytes is longer than {MAX_FRAME_BYTES}")
    return b"@bg1 %d %08x %s\n" % (len(text), zlib.crc32(text), text)


def decode_frame(line: bytes) -> dict[str, Any] | None:
    """The message of a line without its newline; None when the line is no intact frame."""
    start = line.find(b"@bg1 ")
    if start < 0:
        return None
    match = _FRAME.fullmatch(line[start:].rstrip(b"\r"))
    if match is None:
        return None
    length, checksum, text = int(match[1]), int(match[2], 16), match[3]
    if len(text) != length or zlib.crc32(text) != checksum:
        return None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


class FrameReader:
    """Feed bytes as they come; get whole messages and the other lines."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> tuple[list[dict[str, Any]], list[bytes]]:
        """Messages and plain lines that `data` completed."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        messages: list[dict[str, Any]] = []
        others: list[bytes] = []
        for line in lines:
            message = decode_frame(line)
            if message is None:
                others.append(line)
            else:
                messages.append(message)
        if len(self._pending) > 2 * MAX_FRAME_BYTES:
            others.append(self._pending)
            self._pending = b""
        return messages, others
