"""Several ranks failed, one after the other: which one knows why?

A rank that dies makes its peers fail with "connection closed" or with an abort of their own, often
before its own end is seen. So reports are weighed by what they can know, then by their order; what
says no more than that a process ended is weighed by that process's log, too.
"""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from broadgauge.messages.agent import (
    Event,
    LogFlooded,
    PhaseExpired,
    RankExited,
    RankLeft,
    RankSaid,
    StacksDumped,
)
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.rank import STACKS
from broadgauge.messages.stacks import RankStack
from broadgauge.platforms.hang import HangCause, cause_of_hang, stacks_in_logs
from broadgauge.platforms.log_tail import last_lines, tail
from broadgauge.specs.records.record import ErrorKind, Phase, Status, TrialError
from broadgauge.wording.lost_peer import sees_only_a_peer

_NOTHING_BUT_AN_END = re.compile(r"the command ended (with exit code|by signal) \d+")
"""Source: probes/command_failure.py."""
_STOPPED = "its process is stopped"
"""Source: agent/supervisor/watch.py. Where it was stopped says nothing."""
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


class Symptoms:
    """What has gone wrong in a trial so far, in the order it was seen."""

    def __init__(self) -> None:
        self._reports: list[Report] = []
        self._phases: dict[int, Phase] = {}
        self._said: dict[int, str] = {}
        """What each rank said last, the one silent longest first."""
        self._blocks: dict[int, str] = {}
        """Each rank's last."""
        self._is_closed = False
        self._stacks: dict[int, RankStack] = {}
        """Of a user's command, by its own ranks."""
        self._unanswered: dict[int, str] = {}
        """Which rank waits for a storage, and what for, the first to say so first."""
        self._left: list[int] = []
        """Ranks that could not be killed."""

    @property
    def is_failed(self) -> bool:
        """Has anything gone wrong?"""
        return bool(self._reports)

    def see(self, event: Event) -> None:
        """Take an event in, whatever it is; what comes of our own doing is no symptom."""
        if isinstance(event, RankSaid) and event.message.get("type") == "stacks":
            self._see_stacks(event.message)
        if isinstance(event, RankLeft):
            self._left.append(event.rank)
        if self._is_closed:
            return
        match event:
            case RankSaid(rank=rank, message=message):
                self._hear(rank, message)
            case RankExited(was_told_to=False) if event.rank not in self._reported():
                self._reports.append(report_of_exit(event))
            case PhaseExpired():
                self._reports.append(report_of_expiry(event))
                self._is_closed = True
            case LogFlooded():
                self._reports.append(report_of_flood(event))
                self._is_closed = True
            case StacksDumped():
                self._is_closed = True
            case _:
                pass

    def error(self, logs: Sequence[Path]) -> TrialError | None:
        """The likeliest cause, with the end of that rank's log; None when nothing went wrong.

        `logs`: each rank's.
        """
        found = self._cause(logs)
        if found is None or not self._left:
            return found
        message = f"{found.message}; {_left_words(self._left)}"
        return found.model_copy(update={"message": message})

    def _cause(self, logs: Sequence[Path]) -> TrialError | None:
        if not self._reports:
            return None
        reports = [told_by_log(report, logs[report.rank]) for report in self._reports]
        first = reports[0]
        if first.is_bare and not first.is_abort and first.knowledge is Certainty.EXIT:
            # Nobody had failed yet: whatever others say later may come of this end.
            reports[0] = replace(first, knowledge=Certainty.CAUSE)
        best = min(reports, key=lambda report: report.knowledge)
        when = best.message.partition("; ")[0]
        if best.kind is ErrorKind.HUNG and self._unanswered:
            return self._waits_for_storage(best, when)
        if best.has_waited:
            best = self._blame_the_silent(best, len(logs))
        if best.kind is ErrorKind.HUNG and _STOPPED not in best.message:
            stacks = tuple(self._stacks.values()) or stacks_in_logs(logs)
            is_silent = not self._stacks and not stacks[best.rank].frames
            found = None if is_silent else cause_of_hang(stacks, when)
            if found is not None and (found.rank is not None or self._stacks):
                return self._stands_still(best, found)
        return TrialError(
            kind=best.kind,
            message=best.message,
            phase=best.phase or self._phases.get(best.rank),
            rank=best.rank if best.user_rank is None else best.user_rank,
            frame=best.frame,
            last_lines=best.lines or last_lines(logs[best.rank]),
        )

    def are_of_others(self, logs: Sequence[Path]) -> bool:
        """Did ranks tell only that another one was gone, or did not come?"""
        reports = [told_by_log(report, logs[report.rank]) for report in self._reports]
        return all(report.is_of_another for report in reports)

    def _stands_still(self, report: Report, found: HangCause) -> TrialError:
        """The stacks say more than who spoke last."""
        return TrialError(
            kind=report.kind,
            message=found.message,
            phase=report.phase or self._phases.get(report.rank),
            rank=found.rank,
            frame=found.frame,
            last_lines=found.lines,
        )

    def _waits_for_storage(self, report: Report, when: str) -> TrialError:
        """The rank knows what it waits for, and can write no stack meanwhile."""
        rank, what = next(iter(self._unanswered.items()))
        return TrialError(
            kind=report.kind,
            message=f"rank {rank}: {what}; {when}",
            phase=self._phases.get(rank) or report.phase,
            rank=rank,
        )

    def _see_stacks(self, message: dict[str, Any]) -> None:
        try:
            told = STACKS(message)
        except DecodeError:
            return
        self._stacks.update({stack.rank: stack for stack in told.ranks})

    def _hear(self, rank: int, message: dict[str, Any]) -> None:
        self._unanswered.pop(rank, None)
        if message.get("type") == "unanswered":
            if message.get("message"):
                self._unanswered[rank] = str(message["message"])
            return
        self._said.pop(rank, None)
        what = message.get("label") or message.get("phase") or ""
        self._said[rank] = f"{message.get('type')} {what}".strip()
        if message.get("type") == "phase" and message.get("phase") in tuple(Phase):
            self._phases[rank] = Phase(message["phase"])
        if message.get("type") == "block":
            self._blocks[rank] = str(message.get("label") or message.get("kind"))
        if message.get("type") == "failed":
            self._reports.append(report_of_words(rank, message))

    def _reported(self) -> set[int]:
        return {report.rank for report in self._reports}

    def _blame_the_silent(self, report: Report, num_ranks: int) -> Report:
        """Who did not come, of those that told of no failure? The one that spoke longest ago.

        Where all of them waited, the first to tell of it.
        """
        silent = [rank for rank in range(num_ranks) if rank not in self._reported()]
        if not silent:
            return report
        ages = list(self._said)
        rank = min(silent, key=lambda rank: ages.index(rank) if rank in ages else -1)
        said = self._said.get(rank, "nothing")
        block = self._blocks.get(rank, "none in this trial")
        message = (
            f"rank {rank} fell silent, its last message: {said}; its last block: {block}; "
            f"others waited for it: {report.message}"
        )
        return replace(report, rank=rank, message=message, phase=self._phases.get(rank))


def _left_words(ranks: Sequence[int]) -> str:
    """Of those that could not be killed."""
    names = ", ".join(map(str, sorted(ranks)))
    who = f"rank {names} is" if len(ranks) == 1 else f"ranks {names} are"
    return f"{who} left behind: what waits in the kernel can't be killed"


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


def status_of(error: TrialError | None) -> Status:
    """Which status has a trial with this error?"""
    if error is None:
        return Status.OK
    return Status.TIMEOUT if error.kind is ErrorKind.HUNG else Status.FAILED
