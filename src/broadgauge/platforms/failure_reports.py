"""What does one rank's failure say, and how likely is that the cause of all the others?"""

import re
import signal
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from broadgauge.messages.agent import LogFlooded, PhaseExpired, RankExited
from broadgauge.platforms.log_tail import tail
from broadgauge.specs.records.record import ErrorKind, Phase
from broadgauge.wording.lost_peer import sees_only_a_peer

_NOTHING_BUT_AN_END = re.compile(r"the command ended (with exit code|by signal) \d+")
"""Source: probes/command_failure.py."""
_WATCHDOG = re.compile(r"Watchdog caught collective operation timeout: [^\r\n]{0,300}")
"""Source: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, torch 2.8 to 2.11."""


class Certainty(IntEnum):
    """How likely does this report name the cause? Lower is likelier."""

    CAUSE = 0
    EXIT = 1
    """An exit code or an abort without a word: a cause, or a peer that gave up."""
    PEER = 2
    """It saw that another was gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One rank's failure, as it was seen."""

    knowledge: Certainty
    kind: ErrorKind
    rank: int
    message: str
    phase: Phase | None = None
    is_abort: bool = False
    """Its process aborted itself."""
    has_waited: bool = False
    """It waited for another rank in vain, so the cause is elsewhere."""
    is_bare: bool = False
    """It says that a process ended, and not why."""
    is_at_a_mark: bool = False
    """Its host's ranks had all come to a mark, and waited for another host's."""
    user_rank: int | None = None
    """Of the ranks that process `rank` has started; None: `rank` is the user's."""
    frame: str | None = None
    lines: tuple[str, ...] = ()
    """Its own last ones; empty: those of the log."""

    @property
    def is_of_another(self) -> bool:
        """Is the cause elsewhere, as far as it tells?"""
        return self.knowledge is Certainty.PEER or self.has_waited or self.is_at_a_mark


def told_by_log(report: Report, log: Path) -> Report:
    """What does its rank's log add to the news that a process ended?

    An abort may be torch's way to end a collective that did not complete, and an exit code a
    script's answer to a peer that was gone.
    """
    if not report.is_bare:
        return report
    text = tail(log)
    found = _WATCHDOG.search(text) if report.is_abort else None
    if found is not None:
        message = f"rank {report.rank}: {found[0]}"
        return replace(
            report,
            knowledge=Certainty.PEER,
            kind=ErrorKind.HUNG,
            message=message,
            has_waited=True,
        )
    if report.kind is ErrorKind.CRASHED and sees_only_a_peer(text):
        return replace(report, knowledge=Certainty.PEER)
    return report


def report_of_words(rank: int, message: dict[str, Any]) -> Report:
    """What did a rank say that failed?"""
    text = str(message.get("message", "")) or "it did not say why"
    told = str(message.get("kind"))
    kind = ErrorKind(told) if told in tuple(ErrorKind) else ErrorKind.CRASHED
    has_waited = kind is ErrorKind.HUNG
    saw_a_peer = kind is not ErrorKind.WRONG_RESULT and sees_only_a_peer(text)
    user_rank, lines = message.get("rank"), message.get("last_lines")
    is_of_user = isinstance(user_rank, int)
    colon = "" if text.startswith("crashed") else ":"
    return Report(
        knowledge=Certainty.PEER if saw_a_peer or has_waited else Certainty.CAUSE,
        kind=kind,
        rank=rank,
        message=f"rank {user_rank if is_of_user else rank}{colon} {text}",
        has_waited=has_waited,
        is_bare=_NOTHING_BUT_AN_END.match(text) is not None,
        user_rank=user_rank if is_of_user else None,
        frame=str(message["frame"]) if message.get("frame") else None,
        lines=tuple(map(str, lines)) if isinstance(lines, list) else (),
    )


def report_of_exit(event: RankExited) -> Report:
    """What does the end of a rank's process say by itself?"""
    if event.signal is None:
        return Report(
            knowledge=Certainty.EXIT,
            kind=ErrorKind.CRASHED,
            rank=event.rank,
            message=f"rank {event.rank} ended with exit code {event.exit_code} before it was done",
            is_bare=True,
        )
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(event.signal, f"signal {event.signal}")
    hint = (
        "; the kernel's out-of-memory killer does that, see `dmesg`"
        if event.signal == signal.SIGKILL
        else ""
    )
    is_abort = event.signal == signal.SIGABRT
    return Report(
        knowledge=Certainty.EXIT if is_abort else Certainty.CAUSE,
        kind=ErrorKind.KILLED,
        rank=event.rank,
        message=f"rank {event.rank} was ended by {name}{hint}",
        is_abort=is_abort,
        is_bare=is_abort,
    )


def report_of_expiry(event: PhaseExpired) -> Report:
    """Whose silence outlasted a time limit?"""
    return Report(
        knowledge=Certainty.CAUSE,
        kind=ErrorKind.HUNG,
        rank=event.rank,
        message=event.message,
        phase=event.phase,
        is_at_a_mark=event.waits_at is not None,
    )


def report_of_flood(event: LogFlooded) -> Report:
    """Who wrote too much?"""
    message = (
        f"rank {event.rank} wrote more than {event.limit_bytes / 2**20:.0f} MiB "
        "to its log; print less, as the disk holds the records too"
    )
    return Report(
        knowledge=Certainty.CAUSE, kind=ErrorKind.REFUSED, rank=event.rank, message=message
    )
