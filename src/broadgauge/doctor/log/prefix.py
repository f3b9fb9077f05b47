"""Who says what in a line? NCCL's prefix taken off, whatever stands before it.

Source of the forms, NVIDIA/nccl src/debug.cc: `host:pid:tid [device] NCCL INFO …`, of warnings
`host:pid:tid [device] file:line NCCL WARN …` (2.30: `file:line (function) NCCL WARN`); from 2.27 on
a time in brackets may stand before. Launchers, container runtimes and terminals add prefixes and
colours of their own.
"""

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broadgauge.doctor.log.facts import Speaker
from broadgauge.doctor.log.room import MOST_PROCESSES

MOST_CHARACTERS = 4096
"""Of a line's words: what is longer is no message of NCCL's that tells anything."""
_MOST_BEFORE = 512
"""Between the beginning of a prefix and `NCCL`: host names are at most 255 characters."""
_MOST_REMEMBERED = 4096
_LEVELS = frozenset({"INFO ", "WARN ", "TRACE"})
_AFTER_HOST = re.compile(
    r":(?P<pid>\d{1,10}):\d{1,10} (?:\[(?P<device>-?\d{1,4})\] )?"
    r"(?:(?P<origin>[^:]{1,200}):\d{1,6} (?:\(\w{1,100}\) )?)?$",
    re.ASCII,
)
_HOST_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_LONGEST_HOST = 255
_COLOUR = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")


class Prefix(NamedTuple):
    """What stands before `NCCL INFO`, understood."""

    speaker: Speaker
    device: int | None
    num_characters: int
    """Of it; what is before was printed by somebody else."""
    origin: str = ""
    """Of a warning: the source file, of plugins perhaps the function, that printed it."""


class Message(NamedTuple):
    """What one process said with NCCL's prefix."""

    level: str
    """`INFO`, `WARN` or `TRACE`."""
    body: str
    """Without prefix; what another process wrote into the same line is a message of its own."""
    speaker: Speaker
    device: int | None
    origin: str
    """`transport/net_ib.cc`, `nccl_net_ofi_rdma_init`; empty where the line does not say it."""
    begin: int = 0
    """Where its prefix begins in the line: what is before was printed by somebody else."""


def plain(line: bytes) -> str:
    """As text, without colours."""
    text = line.decode(errors="replace")
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.replace("\x00", "") if "\x00" in text else text


@dataclass(slots=True)
class Prefixes:
    """Takes prefixes off. Remembers them: a process repeats its own in each line."""

    _remembered: dict[str, Prefix | None] = field(default_factory=dict)
    _speakers: set[Speaker] = field(default_factory=set)

    def messages(self, text: str) -> Sequence[Message]:
        """Of one line: usually one, none where its prefix is cut, more where lines ran together."""
        mark = text.find("NCCL ")
        if mark < 0:
            return ()
        if text.find("NCCL ", mark + 5) >= 0:
            return tuple(self._several(text))
        if text[mark + 5 : mark + 10] not in _LEVELS:
            return ()
        words = text[mark - _MOST_BEFORE if mark > _MOST_BEFORE else 0 : mark]
        prefix = self._remembered.get(words) or self._before(text, mark)
        return () if prefix is None else (_message(text, mark, len(text), prefix),)

    def _several(self, text: str) -> Iterator[Message]:
        marks: list[tuple[int, Prefix]] = []
        mark = text.find("NCCL ")
        while mark >= 0:
            if text[mark + 5 : mark + 10] in _LEVELS:
                prefix = self._before(text, mark)
                if prefix is not None:
                    marks.append((mark, prefix))
            mark = text.find("NCCL ", mark + 5)
        if not marks:
            return
        ends = [mark - prefix.num_characters for mark, prefix in marks[1:]]
        for (mark, prefix), end in zip(marks, [*ends, len(text)], strict=True):
            yield _message(text, mark, max(end, mark), prefix)

    def _before(self, text: str, mark: int) -> Prefix | None:
        """The prefix that ends where NCCL's name begins."""
        words = text[max(0, mark - _MOST_BEFORE) : mark]
        if words in self._remembered:
            return self._remembered[words]
        prefix = _parse(words)
        if prefix is not None:
            prefix = self._of_known(prefix)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[words] = prefix
        return prefix

    def _of_known(self, prefix: Prefix) -> Prefix:
        """Where lines ran together the end of one stands before the host's name: `0.01node0`."""
        host, pid = prefix.speaker
        if prefix.speaker in self._speakers:
            return prefix
        for begin in range(1, len(host)):
            known = Speaker(host[begin:], pid)
            if known in self._speakers:
                return prefix._replace(speaker=known, num_characters=prefix.num_characters - begin)
        if len(self._speakers) < MOST_PROCESSES:
            self._speakers.add(prefix.speaker)
        return prefix


def _parse(words: str) -> Prefix | None:
    """From its end, so that a long text without a prefix costs no more than one with it."""
    match = _AFTER_HOST.search(words)
    if match is None:
        return None
    before = words[: match.start()]
    host = before[len(before.rstrip(_HOST_CHARACTERS)) :][-_LONGEST_HOST:].lstrip(".-")
    if not host:
        return None
    device = match["device"]
    return Prefix(
        speaker=Speaker(host, int(match["pid"])),
        device=None if device is None else int(device),
        num_characters=len(words) - match.start() + len(host),
        origin=match["origin"] or "",
    )


def _message(text: str, mark: int, end: int, prefix: Prefix) -> Message:
    level = text[mark + 5 : mark + 10].rstrip()
    last = mark + MOST_CHARACTERS
    body = text[mark + 10 : end if end < last else last].strip()
    begin = mark - prefix.num_characters
    return Message(level, body, prefix.speaker, prefix.device, prefix.origin, begin)
