"""Where does a traceback of Python's end, and with which exception?

Its lines have no words in common, so the reader is given all of them: up to the first one that is
as far to the left as the traceback's own first line, behind the same prefix (`[rank0]: `, a time,
a pod's name). Source of the forms: python/cpython Lib/traceback.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

BEGIN = "Traceback (most recent call last):"
_BEGIN_BYTES = BEGIN.encode()
MOST_LINES = 200
"""Of a traceback: Python folds frames that repeat, and libraries seldom nest a hundred deep."""
_MOST_OPEN = 16
"""Of several processes at a time, whose lines ran together."""
_MOST_PREFIX = 300
_EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Za-z_]\w{0,80})(?::\s(?P<words>.*)|:?\s*$)"
)
_NAMED_ERROR = re.compile(r"(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Z]\w{0,80}(?:Error|Exception): ")
_GROUP = "  + Exception Group "
_OF_WORKER = "Original "
"""Of a DataLoader's worker. Source: pytorch/pytorch torch/_utils.py, ExceptionWrapper."""
_TIME = r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|\d{9,13}\.\d{1,9}"
_TIMES = re.compile(_TIME)


class ExceptionLine(NamedTuple):
    """The last line of a traceback."""

    type: str
    """`torch.distributed.DistBackendError`."""
    words: str
    """What it says after the colon; perhaps nothing."""

    def __str__(self) -> str:
        name = self.type.rpartition(".")[2]
        return f"{name}: {self.words}" if self.words else name


def raised(text: str) -> ExceptionLine | None:
    """What a line, without its prefix, says was raised; None: it is no such line."""
    match = _EXCEPTION.match(text)
    if match is None:
        return None
    named = match["type"]
    if "." not in named and not named.lstrip("_")[:1].isupper():
        return None
    return ExceptionLine(named, (match["words"] or "").strip())


@dataclass(slots=True)
class Traceback:
    """One that has begun; what stands before each of its lines is the same but for the time."""

    prefix: re.Pattern[str]
    num_lines: int = 0
    is_ignored: bool = False
    """Python says that it goes on."""
    is_of_logger: bool = False
    """A logger's own words stand before its first line, and before none of the others."""

    def rest_of(self, text: str) -> str | None:
        """A line without its prefix; None: somebody else's line."""
        match = None if self.is_of_logger else self.prefix.match(text)
        if match is None and self._goes_on_alone(text):
            return text
        return None if match is None else text[match.end() :]

    def _goes_on_alone(self, text: str) -> bool:
        """`ERROR worker failed: Traceback (…)`, and then lines without those words."""
        if self.num_lines == 0 and self.prefix.pattern:
            self.is_of_logger = text.startswith('  File "') or _NAMED_ERROR.match(text) is not None
        return self.is_of_logger


def begun_by(text: str) -> Traceback | None:
    """By its first line; None: it is none."""
    at = text.find(BEGIN)
    if not 0 <= at <= _MOST_PREFIX:
        return None
    prefix = text[:at].removesuffix(_GROUP).removesuffix(_OF_WORKER)
    return Traceback(re.compile(f"(?:{_TIME})".join(map(re.escape, _TIMES.split(prefix)))))


def is_inside(rest: str) -> bool:
    """Is it one of a traceback's lines, and not the exception below them?"""
    return not rest.strip() or rest[0] in " \t|+" or rest.startswith(BEGIN)


@dataclass(slots=True)
class OpenTracebacks:
    """Those whose exception was not read yet."""

    open: list[Traceback] = field(default_factory=list)

    def feed(self, text: str) -> tuple[Traceback, str] | None:
        """The next line: which traceback it is the exception of, and the line without prefix."""
        begun = begun_by(text)
        if begun is not None:
            same = begun.prefix.pattern
            self.open = [each for each in self.open if each.prefix.pattern != same]
            self.open = [*self.open[1 - _MOST_OPEN :], begun]
            return None
        ended = None
        for each in reversed(self.open):
            rest = each.rest_of(text)
            if rest is not None:
                ended = None if is_inside(rest) or raised(rest) is None else (each, rest)
                break
        if ended is not None:
            self.open.remove(ended[0])
        for each in self.open:
            each.num_lines += 1
        self.open = [each for each in self.open if each.num_lines < MOST_LINES]
        return ended


def lines_of_tracebacks(block: bytes, tracebacks: OpenTracebacks) -> Iterator[tuple[int, int]]:
    """Where each line that may belong to one begins and ends; the state goes on to the next block.

    What other processes wrote between them is among them.
    """
    begin = 0
    while begin < len(block):
        if not tracebacks.open:
            at = block.find(_BEGIN_BYTES, begin)
            if at < 0:
                return
            begin = block.rfind(b"\n", begin, at) + 1 or begin
        end = block.find(b"\n", begin)
        end = len(block) if end < 0 else end
        yield begin, end
        tracebacks.feed(block[begin : min(end, begin + _MOST_LINE)].decode(errors="replace"))
        begin = end + 1


_MOST_LINE = 4096
"""Bytes of a line that are looked at."""
