"""Which lines of a stream may say something? Found by few literals, so that others cost little.

A training prints gigabytes that mean nothing here. One search for a literal passes 1.6 GB/s on one
core, one for several at once 0.2 GB/s: so each literal is searched for by itself.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broadgauge.doctor.log import nccl_tests

TRIGGERS = (
    *(b"NCCL", b"rror", b"ailed", b"annot", b"ould not", b"imed out", b"Xid"),
    *(b"nable to", b"atchdog", b"fallen off", b"abric manager"),
)
"""One of these stands in every line that a shipped rule knows; a test holds it. Rules of the user's
own bring theirs (`Matcher.triggers`)."""
BLOCK_BYTES = 1 << 20
"""What is searched at a time, and the longest line that is kept whole."""


class TellingLine(NamedTuple):
    number: int
    """From 1."""
    text: bytes
    """Without its end."""


class Counts:
    """How much went through."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self.num_lines = 0
        self.has_tables = False


def telling_lines(
    chunks: Iterable[bytes], counts: Counts, triggers: tuple[bytes, ...] = TRIGGERS
) -> Iterator[TellingLine]:
    """Lines with a trigger, in their order. A line without end, or too long, is cut there."""
    rest = b""
    for chunk in chunks:
        counts.num_bytes += len(chunk)
        block = rest + chunk
        end = block.rfind(b"\n") + 1
        if end == 0 and len(block) < BLOCK_BYTES:
            rest = block
            continue
        if end == 0:  # a line beyond all measure: its parts are read as lines of their own
            yield from _of_block(block, counts, triggers)
            rest = b""
            continue
        yield from _of_block(block[:end], counts, triggers)
        rest = block[end:]
    if rest:
        yield from _of_block(rest, counts, triggers)
        counts.num_lines += 1


def _of_block(block: bytes, counts: Counts, triggers: tuple[bytes, ...]) -> Iterator[TellingLine]:
    counts.has_tables = counts.has_tables or nccl_tests.TABLE in block
    if counts.has_tables:
        triggers = (*triggers, *nccl_tests.TRIGGERS)
    first = counts.num_lines
    counted_to, num_before = 0, 0
    for begin, end in sorted(_telling(block, triggers)):
        if begin != counted_to:
            num_before += block.count(b"\n", counted_to, begin)
        counted_to = begin
        number = first + num_before + 1
        text = block[begin:end]
        if b"\r" in text:  # a progress bar wrote over itself, and then others went on
            for part in text.split(b"\r"):
                if part and any(trigger in part for trigger in triggers):
                    yield TellingLine(number, part)
        else:
            yield TellingLine(number, text)
    counts.num_lines = first + num_before + block.count(b"\n", counted_to)


def _telling(block: bytes, triggers: Iterable[bytes]) -> set[tuple[int, int]]:
    """Where lines with a trigger begin and end."""
    found: set[tuple[int, int]] = set()
    for trigger in triggers:
        end = 0
        at = block.find(trigger)
        while at >= 0:
            begin = block.rfind(b"\n", end, at) + 1 or end
            end = block.find(b"\n", at)
            if end < 0:
                found.add((begin, len(block)))
                break
            found.add((begin, end))
            at = block.find(trigger, end)
    return found
