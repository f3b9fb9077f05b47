"""How do the ranks of a launch end? Step by step, each with its time, never waiting.

RUNNING ── a rank failed or ended ──▶ COLLECTING: what do the others say? ──▶ TERMINATING
   │                                      └─ one saw a time-out ──▶ DUMPING
   ├────── a phase took too long ──▶ DUMPING: Python's stacks to the logs ──▶ TERMINATING
   └────── told to end ──▶ LEAVING: they were asked to go ──▶ TERMINATING ──▶ KILLING
                                                                                              │
          LEFT: what waits in the kernel, as for a mount that hangs, can't be killed ◀────────┘
"""

import signal
from dataclasses import dataclass

from broadgauge.agent.supervisor.rank_process import RankProcess
from broadgauge.agent.supervisor.watch import Watch
from broadgauge.messages.vocabulary import TextEnum
from broadgauge.messages.waiting_limits import COLLECT_S, waiting_limit_s

DUMP_S = waiting_limit_s(2.0)
"""A node of a user's command asks its ranks one after the other."""
GRACE_S = waiting_limit_s(3.0)
"""From TERM to KILL."""
KILL_S = waiting_limit_s(5.0)
"""From KILL to where a rank is left: to let go of much memory takes a moment."""
STORAGE_KILL_S = waiting_limit_s(2.0)
"""The same where all wait for a storage: that ends at once, or not before it answers."""
_LOOK_S = 0.02


class Stage(TextEnum):
    RUNNING = "running"
    COLLECTING = "collecting"
    DUMPING = "dumping"
    LEAVING = "leaving"
    TERMINATING = "terminating"
    KILLING = "killing"
    LEFT = "left"


@dataclass(slots=True, kw_only=True)
class Ending:
    """How far the end of a launch has come."""

    ranks: list[RankProcess]
    teardown_s: float
    stage: Stage = Stage.RUNNING
    deadline_s: float | None = None
    saw_hang: bool = False
    """A rank saw a collective time out, so another may hang."""

    @property
    def is_over(self) -> bool:
        """Is there no rank to wait for?"""
        return self.stage is Stage.LEFT or not any(rank.is_running for rank in self.ranks)

    @property
    def is_under_way(self) -> bool:
        """Do ranks end because we have them end?"""
        return self.stage not in (Stage.RUNNING, Stage.COLLECTING)

    def collect(self, now_s: float, *, saw_hang: bool) -> None:
        """A rank has failed: hear the others for a moment."""
        self.saw_hang |= saw_hang
        if self.stage is Stage.RUNNING:
            self.stage, self.deadline_s = Stage.COLLECTING, now_s + COLLECT_S

    def leave(self, now_s: float) -> None:
        """The ranks were asked to end."""
        if self.stage is Stage.RUNNING:
            self.stage, self.deadline_s = Stage.LEAVING, now_s + self.teardown_s

    def dump_stacks(self, now_s: float) -> None:
        """Have every rank write Python's stacks."""
        self.stage, self.deadline_s = Stage.DUMPING, now_s + DUMP_S
        for rank in self.ranks:
            rank.ask_for_stacks()

    def terminate(self, now_s: float) -> None:
        """Have every rank end."""
        self.stage, self.deadline_s = Stage.TERMINATING, now_s + GRACE_S
        self._signal_all(signal.SIGTERM)
        self._signal_all(signal.SIGCONT)

    def advance(self, now_s: float, watch: Watch) -> None:
        """Go on to the next step when this one's time is over, or nothing is left to wait for."""
        if self.stage is Stage.RUNNING or self.deadline_s is None:
            return
        running = [watch.ranks[rank.plan.rank] for rank in self.ranks if rank.is_running]
        settled = all(rank.has_nothing_to_say for rank in running)
        wait_for_storage = all(rank.waits_for_storage for rank in running)
        if now_s < self.deadline_s and not self._is_done(
            settled=settled, wait_for_storage=wait_for_storage
        ):
            return
        if self.stage is Stage.TERMINATING:
            kill_s = STORAGE_KILL_S if wait_for_storage else KILL_S
            self.stage, self.deadline_s = Stage.KILLING, now_s + kill_s
            self._signal_all(signal.SIGKILL)
        elif self.stage is Stage.KILLING:
            self.stage, self.deadline_s = Stage.LEFT, None
        elif self.stage is Stage.COLLECTING and self.saw_hang and not settled:
            self.dump_stacks(now_s)
        else:
            self.terminate(now_s)

    def _is_done(self, *, settled: bool, wait_for_storage: bool) -> bool:
        """Is there nothing left to wait for in this step?"""
        match self.stage:
            case Stage.COLLECTING:
                return settled
            case Stage.DUMPING:
                return wait_for_storage or all(rank.has_written_stacks for rank in self.ranks)
            case Stage.TERMINATING:  # it hears no signal but KILL
                return wait_for_storage
            case _:
                return False

    def next_look_s(self, now_s: float) -> float | None:
        """When is the step to be asked again whether it is done? Stacks come without a word."""
        return now_s + _LOOK_S if self.stage is Stage.DUMPING else self.deadline_s

    def _signal_all(self, number: signal.Signals) -> None:
        for rank in self.ranks:
            rank.signal_group(number)
