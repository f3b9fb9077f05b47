"""Which rank of this node ended the user's command, where, and in which words of its own?

torchrun names the rank whose end it saw first. Where one rank's end ends its peers at once, that
is as often one of these: each rank's own last words decide.
"""

import errno
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.messages.rank import Failed
from broadgauge.messages.stacks import Raised, last_dump, last_traceback, own_frame
from broadgauge.messages.vocabulary import ErrorKind
from broadgauge.probes.command_streams import CommandStreams
from broadgauge.wording.lost_peer import sees_only_a_peer

_MOST_LINES = 40
_FEW_LINES = 20
_NO_PART = 3
_NO_SPACE = re.compile(rf"\[Errno ({errno.ENOSPC}|{errno.EDQUOT})\]")
_FATAL = re.compile(r"^Fatal Python error: (.+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastWords:
    """Of one rank."""

    rank: int
    error: str | None
    frame: str | None
    lines: tuple[str, ...]

    @property
    def weight(self) -> int:
        """Less is likelier the cause."""
        if self.error is None:
            return 1
        return 2 if sees_only_a_peer(self.error) else 0


def describe_end(
    trial_id: str, streams: CommandStreams, exit_code: int, folder: str | None
) -> Failed:
    """The rank that is to blame on this node. `folder`: where the script runs."""
    torchrun = streams.torchrun
    first = torchrun.failed_local_rank or 0
    listed = torchrun.exit_codes.keys() or set(range(len(streams.ranks)))
    words = {n: _words_of(streams, rank, folder) for n, rank in enumerate(streams.ranks)}

    def likelihood(local: int) -> tuple[int, bool, bool]:
        """Less is likelier. One that torchrun ended, and that said nothing, has no part in it."""
        is_listed = local in listed
        weight = words[local].weight if is_listed or words[local].error else _NO_PART
        return weight, not is_listed, local != first

    local = min(words, key=likelihood)
    best = words[local]
    seen_code = exit_code if torchrun.rank_exit_code is None else torchrun.rank_exit_code
    code = torchrun.exit_codes.get(local, seen_code)
    return Failed(
        trial_id=trial_id,
        kind=_kind_of(best, code),
        message=_sentence(best, code),
        rank=best.rank,
        frame=best.frame,
        last_lines=best.lines,
    )


def _kind_of(words: _LastWords, exit_code: int) -> ErrorKind:
    if _NO_SPACE.search(words.error or ""):
        return ErrorKind.NO_SPACE
    return ErrorKind.KILLED if exit_code < 0 else ErrorKind.CRASHED


def _words_of(streams: CommandStreams, rank: int, folder: str | None) -> _LastWords:
    lines = streams.last_lines(rank)
    raised = last_traceback(lines) or _fatal(lines)
    if raised is None:
        return _LastWords(rank=rank, error=None, frame=None, lines=tuple(lines[-_FEW_LINES:]))
    own = own_frame(raised.frames)
    return _LastWords(
        rank=rank,
        error=raised.error,
        frame=None if own is None else own.words(folder),
        lines=raised.lines[-_MOST_LINES:],
    )


def _fatal(lines: Sequence[str]) -> Raised | None:
    """What PYTHONFAULTHANDLER writes of a segmentation fault and the like."""
    begins = [i for i, line in enumerate(lines) if _FATAL.match(line)]
    if not begins:
        return None
    rest = tuple(lines[begins[-1] :])
    match = _FATAL.match(rest[0])
    assert match is not None
    return Raised(error=match[1], frames=last_dump("\n".join(rest)), lines=rest)


def _sentence(words: _LastWords, exit_code: int) -> str:
    where = "" if words.frame is None else f" at {words.frame}"
    if words.error is not None:
        return f"crashed{where}: {words.error}"
    if exit_code >= 0:
        return _with_last(f"the command ended with exit code {exit_code}", words.lines)
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-exit_code, f"signal {-exit_code}")
    return _with_last(f"the command ended by signal {-exit_code} ({name})", words.lines)


def _with_last(message: str, lines: Sequence[str]) -> str:
    last = [line for line in lines if line.strip()][-1:]
    return f"{message}; its last line: {last[0].strip()}" if last else message
