"""Which lines of a stream may say something? Found by few literals, so that others cost little.

A training prints gigabytes that mean nothing here. One search for a literal passes 1.6 GB/s on one
core, one for fifty at once 0.01 GB/s: so each literal is searched for by itself, first in what is
left of a block without digits, marks, some letters, and lines that are alike then.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from broadgauge.doctor.log import (
    gid_tables,
    gpu_names,
    ibstat,
    ibv_devinfo,
    nccl_tests,
    topo_matrix,
)
from broadgauge.doctor.log.tracebacks import OpenTracebacks, lines_of_tracebacks
from broadgauge.doctor.log.wrapping import is_wrapped, stream_of, unwrapped

TRIGGERS = (
    *(b"CCL", b"rror", b"ailed", b"ailure", b"ould not", b"imed out", b"Xid (", b"istributed"),
    *(b"_STATE_DICT", b"GLOO_SOCKET_IFNAME", b"RDMA subsystem network namespace", b"\tenvoy "),
    *(b"xit", b"Kill", b"SIG", b"bort", b"ABORT", b"Segmentation fault", b"core dumped"),
    *(b"terminate called", b"what():", b"BAD TERMINATION", b"RTE ", b"enough slots"),
    *(b" cannot be selected", b"ssh: connect", b"denied (", b"command not found", b"marked dead"),
    *(b"node was low on resource", b"errno: ", b"igh temperature", b"did not receive grad"),
    *(b"ERROR", b"FAILED", b"oom-kill", b"lost communication", b"No components were"),
    *(b"received by PID", b"examples/s]", b"ibverbs: ", b"abric manager", b"not responding"),
    *(b"blocked for more", b"xception", b"fatal", b"PMI", b"step creation", b"nable to "),
    *(b"xceed", b"as root", b"assign flavors", b"deadlock", b"OVERFLOW", b"alling back to "),
    *(b"nschedulable", b"NotReady", b"reempted", b"be scheduled", b"suggested max", b"ncompatible"),
    *(b" by GPU", b"NVRM", b"mlx5_core ", b"amdgpu", b"PAGE_FAULT", b"fault addr", b"errno = 1"),
)
"""One of these stands in every line that a shipped rule knows; a test holds it. Rules of the user's
own bring theirs (`Matcher.triggers`). Each costs a search of every byte: short words that many
rules share are best."""
ENDING = (
    *(b"FATAL", b"CRITICAL", b"F tensorflow/", b"F external/", b"killed"),
    *(b"erminated", b"Hangup", b"sending signal", b"panicked", b" died", b"memory pressure"),
    *(b"smashing", b"egmentation fault", b"segfault", b"protection fault", b"corruption"),
    *(b"invalid pointer", b"corrupted size", b"Assertion", b"nexpectedly"),
    *(b"CrashLoop", b"Backoff", b"is failed", b"can't open file", b"No module named"),
    *(b"job killed", b"(failed "),
)
"""What may stand beside these in the last words of a process, where no rule knows them."""


class _Lists(NamedTuple):
    """Tables whose rows have no trigger: what stands in them is looked for once one began."""

    heads: tuple[bytes, ...]
    num_lines_before: int
    """How many lines before the head belong to it."""
    triggers: tuple[bytes, ...]


_LISTS = (
    _Lists((ibstat.SECOND, ibv_devinfo.FIRST), 1, (*ibstat.TRIGGERS, *ibv_devinfo.TRIGGERS)),
    _Lists((gid_tables.OF_DEVINFO, gid_tables.OF_TABLE), 0, gid_tables.TRIGGERS),
    _Lists((topo_matrix.HEAD,), 0, topo_matrix.TRIGGERS),
    _Lists((nccl_tests.TABLE,), 0, nccl_tests.TRIGGERS),
)
_OF_TABLES = len(_LISTS) - 1
BLOCK_BYTES = 1 << 20
"""What is searched at a time; a line that is longer is cut, at the latest after two of them."""
LONGEST_BYTES = 1 << 14
"""A longer line is no message: what stands around its triggers is looked at."""
_LEFT_OUT = bytes(c for c in range(128) if c != 10 and (not chr(c).isalpha() or chr(c) in "aesnm"))
"""What a block is first searched without: three quarters of what trainings print; and of lines
that are alike then, as those of all steps are, one is left. A trigger whose other letters do not
stand there in their order is not in the block itself."""
_FEWEST_LETTERS = 3
"""Fewer are everywhere."""
LAST_ERROR = b"Last error:"
"""How torch announces NCCL's own words, which are the next line, whatever they are. Source:
pytorch/pytorch torch/csrc/distributed/c10d/NCCLUtils.cpp, getNcclErrorDetailStr."""
_BYTES_BEFORE = 1 << 11
_BYTES_AFTER = 1 << 13
_MOST_JOINED = 16
"""Lines of a container's runtime that are one of the program's: each has 16 KiB of it."""
_WRAPPED = (b"{", b"1", b"2")
"""How lines begin that wrapping.py knows."""
_BREAKS = re.compile(rb"[\r\n]")


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
        self.begun: set[int] = set()
        """Of which of the known lists, by number, a head was seen."""
        self.has_open_row = False
        """A row of a table that NCCL cut has not ended with the block."""
        self.tracebacks = OpenTracebacks()


def telling_lines(
    chunks: Iterable[bytes], counts: Counts, triggers: Sequence[bytes] = TRIGGERS
) -> Iterator[TellingLine]:
    """Lines with a trigger, in their order, however the stream was cut into chunks."""
    triggers = (*dict.fromkeys(triggers), nccl_tests.STARTING, *gpu_names.TRIGGERS, *ENDING)
    rest = b""
    for part in _blocks(chunks):
        counts.num_bytes += len(part)
        block = rest + part
        end = block.rfind(b"\n") + 1
        if end == 0 and len(block) < BLOCK_BYTES:
            rest = block
            continue
        if end == 0:  # a line beyond all measure: its parts are read as lines of their own
            end = len(block)
        yield from _of_block(block[:end], triggers, counts)
        rest = block[end:]
    if rest:
        yield from _of_block(rest, triggers, counts)
        counts.num_lines += 1


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, all blocks but the last of one size."""
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size < BLOCK_BYTES:
            continue
        joined = b"".join(pieces)
        whole = size - size % BLOCK_BYTES
        for begin in range(0, whole, BLOCK_BYTES):
            yield joined[begin : begin + BLOCK_BYTES]
        pieces, size = [joined[whole:]], size - whole
    if size:
        yield b"".join(pieces)


def _of_block(block: bytes, triggers: Sequence[bytes], counts: Counts) -> Iterator[TellingLine]:
    """Lists are read from where they begin: what their rows hold is looked for from there on."""
    while begins := [
        (at, number)
        for number, lists in enumerate(_LISTS)
        if number not in counts.begun and (at := _first_of(block, lists.heads)) >= 0
    ]:
        at, number = min(begins)
        begin = _begin_of_line(block, at, _LISTS[number].num_lines_before)
        yield from _of_part(block[:begin], _with_lists(triggers, counts), counts)
        counts.begun.add(number)
        block = block[begin:]
    yield from _of_part(block, _with_lists(triggers, counts), counts)


def _with_lists(triggers: Sequence[bytes], counts: Counts) -> Sequence[bytes]:
    return (*triggers, *(each for number in counts.begun for each in _LISTS[number].triggers))


def _first_of(block: bytes, words: Iterable[bytes]) -> int:
    """Where the first of them stands; -1: none does."""
    return min((at for each in words if (at := block.find(each)) >= 0), default=-1)


def _begin_of_line(block: bytes, at: int, num_lines_before: int) -> int:
    """Of the line with this position, or one so many lines before it."""
    begin = block.rfind(b"\n", 0, at) + 1
    for _ in range(num_lines_before):
        begin = block.rfind(b"\n", 0, max(0, begin - 1)) + 1
    return begin


def _of_part(block: bytes, triggers: Sequence[bytes], counts: Counts) -> Iterator[TellingLine]:
    number = counts.num_lines + 1
    counted_to, joined_to = 0, 0
    has_returns = b"\r" in block
    telling = _telling(block, triggers)
    telling |= set(_ends_of_cut_rows(block, telling, counts))
    of_tracebacks = set(lines_of_tracebacks(block, counts.tracebacks))
    for begins, end in sorted(telling | of_tracebacks):
        if begins < joined_to:
            continue
        begin, text = begins, block[begins:end]
        is_whole = True
        if text[:1] in _WRAPPED and is_wrapped(text):
            is_whole = False
            begin, joined_to, texts = _joined(block, max(joined_to, counted_to), begins, end)
            text = b"".join(map(unwrapped, texts))
        if begin != counted_to:
            number += block.count(b"\n", counted_to, begin)
            counted_to = begin
        if is_whole and not (has_returns and b"\r" in text) and len(text) <= LONGEST_BYTES:
            yield TellingLine(number, text)
        else:
            is_kept = (begins, end) in of_tracebacks and len(text) <= LONGEST_BYTES
            for words in filter(None, _BREAKS.split(text)) if is_kept else _said(text, triggers):
                yield TellingLine(number, words)
        if text.rstrip().endswith(LAST_ERROR):
            stop = max(end, joined_to)
            after = _line_after(block, stop)
            if after is not None:
                joined_to = stop + 1 + len(after)
                yield TellingLine(
                    number + 1 + block.count(b"\n", begin, stop), unwrapped(after).rstrip()
                )
    counts.num_lines = number - 1 + block.count(b"\n", counted_to)


def _line_after(block: bytes, end: int) -> bytes | None:
    """The line that begins after `end`; None where the block does."""
    begin = end + 1
    if begin >= len(block):
        return None
    after = block.find(b"\n", begin)
    return block[begin : len(block) if after < 0 else after]


@functools.lru_cache(maxsize=1024)
def _letters_of(trigger: bytes) -> bytes:
    return trigger.translate(None, _LEFT_OUT)


def _telling(block: bytes, triggers: Iterable[bytes]) -> set[tuple[int, int]]:
    """Where lines with a trigger begin and end."""
    found: set[tuple[int, int]] = set()
    letters = b"\n".join(set(block.translate(None, _LEFT_OUT).split(b"\n")))
    for trigger in triggers:
        few = _letters_of(trigger)
        if len(few) >= _FEWEST_LETTERS and few not in letters:
            continue
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


def _ends_of_cut_rows(
    block: bytes, telling: Iterable[tuple[int, int]], counts: Counts
) -> Iterator[tuple[int, int]]:
    """Lines of nothing but figures, which end rows of tables that NCCL wrote into."""
    if _OF_TABLES not in counts.begun:
        return
    after = [end + 1 for begin, end in telling if nccl_tests.CUT_ROW.search(block, begin, end)]
    if counts.has_open_row:
        after.append(0)
    counts.has_open_row = False
    for begin in after:
        line = _first_of_others(block, begin)
        if line is None:
            counts.has_open_row = True
        else:
            yield line


def _first_of_others(block: bytes, begin: int) -> tuple[int, int] | None:
    """The first line from here on that is not NCCL's."""
    while begin < len(block):
        end = block.find(b"\n", begin)
        end = len(block) if end < 0 else end
        if block.find(b"NCCL ", begin, end) < 0:
            return begin, end
        begin = end + 1
    return None


def _joined(block: bytes, floor: int, begin: int, end: int) -> tuple[int, int, list[bytes]]:
    """The line with those that it goes on in, and those that it began in: begin, end, texts."""
    texts = [block[begin:end]]
    while begin > floor and len(texts) < _MOST_JOINED:
        before = max(floor, block.rfind(b"\n", floor, begin - 1) + 1)
        if stream_of(block[before : begin - 1]) is None:
            break
        texts.insert(0, block[before : begin - 1])
        begin = before
    while end + 1 < len(block) and len(texts) < _MOST_JOINED and stream_of(texts[-1]) is not None:
        after = block.find(b"\n", end + 1)
        after = len(block) if after < 0 else after
        if not is_wrapped(block[end + 1 : after]):
            break
        texts.append(block[end + 1 : after])
        end = after
    return begin, end, texts


def _said(text: bytes, triggers: Sequence[bytes]) -> Iterator[bytes]:
    """What a progress bar wrote over, and went on after; of a very long line what may tell."""
    if b"\r" not in text and b"\n" not in text:
        if len(text) <= LONGEST_BYTES:
            yield text
        else:
            yield from _around_triggers(text, triggers)
        return
    for part in _BREAKS.split(text):
        if part and any(trigger in part for trigger in triggers):
            yield from _said(part, triggers)


def _around_triggers(text: bytes, triggers: Sequence[bytes]) -> Iterator[bytes]:
    """Pieces of it, none of which overlaps another."""
    next_of = {trigger: text.find(trigger) for trigger in triggers}
    end = 0
    while places := [at for at in next_of.values() if at >= 0]:
        begin = max(end, min(places) - _BYTES_BEFORE)
        end = min(places) + _BYTES_AFTER
        yield text[begin:end]
        for trigger, at in next_of.items():
            if 0 <= at < end:
                next_of[trigger] = text.find(trigger, end)
