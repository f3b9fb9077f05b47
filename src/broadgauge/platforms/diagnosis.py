"""Several ranks failed, one after the other: which one knows why?

A rank that dies makes its peers fail with "connection closed" or with an abort of their own, often
before its own end is seen. So reports are weighed by what they can know, then by their order; what
says no more than that a process ended is weighed by that process's log, too.
"""

from collections.abc import Sequence
from dataclasses import replace
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
from broadgauge.platforms.failure_reports import (
    Certainty,
    Report,
    report_of_exit,
    report_of_expiry,
    report_of_flood,
    report_of_words,
    told_by_log,
)
from broadgauge.platforms.hang import HangCause, cause_of_hang, stacks_in_logs
from broadgauge.platforms.log_tail import last_lines
from broadgauge.specs.records.record import ErrorKind, Phase, Status, TrialError

_STOPPED = "its process is stopped"
"""Source: agent/supervisor/watch.py. Where it was stopped says nothing."""


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


def status_of(error: TrialError | None) -> Status:
    """Which status has a trial with this error?"""
    if error is None:
        return Status.OK
    return Status.TIMEOUT if error.kind is ErrorKind.HUNG else Status.FAILED
