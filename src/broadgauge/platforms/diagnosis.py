"""Several ranks failed, one after the other: which one knows why?

A rank that dies makes its peers fail with "connection closed" or with an abort of their own, often
before its own end is seen. So reports are weighed by what they can know, then by their order.
"""

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from broadgauge.platforms.supervisor.protocol import (
    Event,
    LogFlooded,
    PhaseExpired,
    RankExited,
    RankSaid,
)
from broadgauge.specs.record import ErrorKind, Phase, Status, TrialError

_ONLY_A_PEER_SEES = re.compile(
    r"connection (was )?(closed|reset|refused|aborted)|closed by (remote )?peer|broken pipe"
    r"|remote process|remote error|watchdog|heartbeat|communicator was aborted"
    r"|connect(ion)? timed? ?out|socket timeout|wait timeout|timed out (after )?waiting"
    r"|unhandled system error|nccl communicator",
    re.IGNORECASE,
)


class Knowledge(IntEnum):
    """How likely does this report name the cause? Lower is likelier."""

    CAUSE = 0
    EXIT = 1
    """An exit code or an abort without a word: a cause, or a peer that gave up."""
    PEER = 2
    """It saw that another was gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One rank's failure, as it was seen."""

    knowledge: Knowledge
    kind: ErrorKind
    rank: int
    message: str
    phase: Phase | None = None


class Symptoms:
    """What has gone wrong in a trial so far, in the order it was seen."""

    def __init__(self) -> None:
        self._reports: list[Report] = []
        self._phases: dict[int, Phase] = {}
        self._told: set[int] = set()

    @property
    def is_failed(self) -> bool:
        """Has anything gone wrong?"""
        return bool(self._reports)

    def see(self, event: Event) -> None:
        """Take an event in, whatever it is."""
        match event:
            case RankSaid(rank=rank, message=message):
                self._hear(rank, message)
            case RankExited(was_told_to=False) if event.rank not in self._told:
                self._reports.append(report_of_exit(event, self._phases.get(event.rank)))
            case PhaseExpired():
                self._reports.append(
                    Report(
                        knowledge=Knowledge.CAUSE,
                        kind=ErrorKind.HUNG,
                        rank=event.rank,
                        message=event.message,
                        phase=event.phase,
                    )
                )
            case LogFlooded():
                advice = (
                    f"rank {event.rank} wrote more than {event.limit_bytes / 2**20:.0f} MiB "
                    "to its log; print less, as the disk holds the records too"
                )
                self._reports.append(
                    Report(
                        knowledge=Knowledge.CAUSE,
                        kind=ErrorKind.REFUSED,
                        rank=event.rank,
                        message=advice,
                    )
                )
            case _:
                pass

    def error(self, last_lines: Callable[[int], tuple[str, ...]]) -> TrialError | None:
        """The likeliest cause, with the end of that rank's log; None when nothing went wrong."""
        if not self._reports:
            return None
        best = min(self._reports, key=lambda report: report.knowledge)
        return TrialError(
            kind=best.kind,
            message=best.message,
            phase=best.phase or self._phases.get(best.rank),
            rank=best.rank,
            last_lines=last_lines(best.rank),
        )

    def _hear(self, rank: int, message: dict[str, object]) -> None:
        if message.get("type") == "phase" and message.get("phase") in tuple(Phase):
            self._phases[rank] = Phase(str(message["phase"]))
        if message.get("type") != "failed":
            return
        text = str(message.get("message", "")) or "it did not say why"
        told = str(message.get("kind"))
        kind = ErrorKind(told) if told in tuple(ErrorKind) else ErrorKind.CRASHED
        saw_a_peer = kind is not ErrorKind.WRONG_RESULT and _ONLY_A_PEER_SEES.search(text)
        self._told.add(rank)
        self._reports.append(
            Report(
                knowledge=Knowledge.PEER if saw_a_peer else Knowledge.CAUSE,
                kind=kind,
                rank=rank,
                message=f"rank {rank}: {text}",
            )
        )


def report_of_exit(event: RankExited, phase: Phase | None) -> Report:
    """What does the end of a rank's process say by itself?"""
    if event.signal is None:
        return Report(
            knowledge=Knowledge.EXIT,
            kind=ErrorKind.CRASHED,
            rank=event.rank,
            message=f"rank {event.rank} ended with exit code {event.exit_code} before it was done",
            phase=phase,
        )
    name = signal.Signals(event.signal).name
    hint = (
        "; the kernel's out-of-memory killer does that, see `dmesg`"
        if event.signal == signal.SIGKILL
        else ""
    )
    return Report(
        knowledge=Knowledge.EXIT if event.signal == signal.SIGABRT else Knowledge.CAUSE,
        kind=ErrorKind.KILLED,
        rank=event.rank,
        message=f"rank {event.rank} was ended by {name}{hint}",
        phase=phase,
    )


def status_of(error: TrialError | None) -> Status:
    """Which status has a trial with this error?"""
    if error is None:
        return Status.OK
    return Status.TIMEOUT if error.kind is ErrorKind.HUNG else Status.FAILED
