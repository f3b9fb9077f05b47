"""A job stands still: which rank do the others wait for, and at which line of its own?

Ranks inside communication wait for one that is not. Where each rank stands is known by its stack.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.stacks import Activity, RankStack, last_dump
from broadgauge.platforms.log_tail import tail

_MOST_LINES = 40
_MOST_NAMED = 4
_WORDS = {
    Activity.COMMUNICATION: "in communication",
    Activity.BACKWARD: "in the backward pass",
    Activity.DEVICE: "for its GPU",
    Activity.ELSEWHERE: "outside communication",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HangCause:
    """Who is to blame, or where all stand if that can't be told."""

    rank: int | None
    frame: str | None
    message: str
    lines: tuple[str, ...]
    """The stack of the rank to blame, the innermost frame last, as a traceback has it."""


def cause_of_hang(stacks: Sequence[RankStack], when: str) -> HangCause | None:
    """`when`: how it was noticed. None: no rank's stack is known."""
    known = sorted((stack for stack in stacks if stack.frames), key=lambda stack: stack.rank)
    stopped = [stack for stack in stacks if stack.state in ("T", "t")]
    if stopped:
        return _blame(stopped[0], known, when, "is stopped by a signal")
    if not known:
        return None
    suspect = _suspect(known, is_alone=len(stacks) == 1)
    if suspect is None:
        places = "; ".join(_stands(stack) for stack in known[:_MOST_NAMED])
        return HangCause(rank=None, frame=None, message=f"{places}; {when}", lines=())
    what = f"hangs {_doing(suspect)}"
    return _blame(suspect, known, when, what)


def _suspect(known: Sequence[RankStack], *, is_alone: bool) -> RankStack | None:
    """The one that does not wait for others; of several that don't, the one that stands alone.

    None: all wait alike, or it can't be told which of them is the one.
    """
    if is_alone:
        return known[0]
    outside = [stack for stack in known if stack.activity is Activity.ELSEWHERE]
    if len(outside) == 1:
        return outside[0]
    candidates = outside or list(known)
    places = Counter(stack.place for stack in candidates)
    lonely = [stack for stack in candidates if places[stack.place] == 1]
    return lonely[0] if len(lonely) == 1 and len(candidates) > 2 else None


def _blame(suspect: RankStack, known: Sequence[RankStack], when: str, what: str) -> HangCause:
    at = "" if suspect.place is None else f" at {suspect.place}"
    others = [stack for stack in known if stack.rank != suspect.rank]
    waiting = f"; {_others_words(others)}" if others else ""
    return HangCause(
        rank=suspect.rank,
        frame=suspect.place,
        message=f"rank {suspect.rank} {what}{at}{waiting}; {when}",
        lines=_as_traceback(suspect),
    )


def _others_words(others: Sequence[RankStack]) -> str:
    """`ranks 0, 2 wait in communication at train.py:40 in step`."""
    first = others[0]
    alike = [o for o in others if (o.activity, o.place) == (first.activity, first.place)]
    if len(alike) < len(others):
        more = len(others) - _MOST_NAMED
        named = "; ".join(_stands(stack) for stack in others[:_MOST_NAMED])
        return f"{named}; and {more} more" if more > 0 else named
    ranks = ", ".join(str(stack.rank) for stack in others)
    who = f"rank {ranks} waits" if len(others) == 1 else f"ranks {ranks} wait"
    return f"{who} {_doing(first)} at {first.place}"


def _stands(stack: RankStack) -> str:
    return f"rank {stack.rank} is {_doing(stack)} at {stack.place}"


def _doing(stack: RankStack) -> str:
    """`in all_reduce`, `outside communication`."""
    is_in = stack.activity is Activity.COMMUNICATION and stack.operation is not None
    return f"in {stack.operation}" if is_in else _WORDS[stack.activity]


def _as_traceback(stack: RankStack) -> tuple[str, ...]:
    """As Python shows a call: the innermost last."""
    frames = list(reversed(stack.frames))[-_MOST_LINES + 1 :]
    if not frames:
        return ()
    head = f"Stack of rank {stack.rank} (most recent call last):"
    return (head, *(f'  File "{f.file}", line {f.line}, in {f.function}' for f in frames))


def stacks_in_logs(logs: Iterable[Path]) -> tuple[RankStack, ...]:
    """Of ranks whose own log is what faulthandler writes to."""
    return tuple(RankStack(rank=rank, frames=last_dump(tail(log))) for rank, log in enumerate(logs))
