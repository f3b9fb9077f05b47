"""Where is each rank, how long has it been there, and who is silent? No I/O, no clock."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from broadgauge.messages.launch_order import PhaseLimits
from broadgauge.messages.vocabulary import Phase, assert_never


@dataclass(slots=True, kw_only=True)
class RankActivity:
    """What one rank was last heard to do. Times of one monotonic clock."""

    phase: Phase | None = Phase.RENDEZVOUS
    """None: between trials, where nothing is expected of it."""
    phase_since_s: float
    heard_s: float
    spent_s: dict[Phase, float] = field(default_factory=dict)
    """In this trial, in earlier parts of each phase: collectives warm up and measure by size."""
    said: str = "nothing yet"
    detail: str = ""
    last_block: str | None = None
    waits_at: str | None = None
    waits_for_storage: bool = False
    has_failed: bool = False

    @property
    def has_nothing_to_say(self) -> bool:
        """It said what went wrong; or it waits to be told to go on, and sees nothing elsewhere."""
        return self.has_failed or self.waits_at is not None or self.phase is None

    def enter(self, phase: Phase | None, now_s: float) -> None:
        """A new phase begins; the same one again goes on."""
        if phase is self.phase:
            return
        if self.phase is not None:
            before_s = self.spent_s.get(self.phase, 0.0)
            self.spent_s[self.phase] = before_s + now_s - self.phase_since_s
        self.phase, self.phase_since_s = phase, now_s

    def begin_trial(self, phase: Phase, now_s: float) -> None:
        """All times start over."""
        self.phase, self.phase_since_s, self.heard_s = phase, now_s, now_s
        self.spent_s = {}
        self.waits_at, self.last_block, self.detail = None, None, ""

    def deadline_s(self, limits: PhaseLimits) -> float | None:
        """When has it been in its phase for as long as it may in one trial, all parts together?"""
        if self.phase is None:
            return None
        return self.phase_since_s + limit_s(limits, self.phase) - self.spent_s.get(self.phase, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """A phase's limit has passed for this rank, the one silent longest; or it told of a stall."""

    rank: int
    phase: Phase
    message: str
    waits_at: str | None = None
    """The mark at which it waits, for a rank of another agent's."""


@dataclass(slots=True, kw_only=True)
class Watch:
    """What all ranks of a launch were last heard to do."""

    limits: PhaseLimits
    ranks: dict[int, RankActivity] = field(default_factory=dict)
    """By their numbers in the launch: another agent's are not among them."""

    @classmethod
    def of(cls, numbers: Iterable[int], limits: PhaseLimits, now_s: float) -> "Watch":
        """All ranks have just been started."""
        ranks = {n: RankActivity(phase_since_s=now_s, heard_s=now_s) for n in numbers}
        return cls(limits=limits, ranks=ranks)

    @property
    def is_idle(self) -> bool:
        """Is no rank expected to do anything?"""
        return all(rank.phase is None for rank in self.ranks.values())

    def all_enter(self, phase: Phase, now_s: float) -> None:
        """Every rank was told to begin a trial."""
        for rank in self.ranks.values():
            rank.begin_trial(phase, now_s)

    def hear(self, number: int, message: dict[str, Any], now_s: float) -> None:
        """A rank said something; whatever a frame of a broken rank holds, this does not raise."""
        rank = self.ranks[number]
        kind = str(message.get("type"))
        rank.waits_for_storage = kind == "unanswered" and bool(message.get("message"))
        if kind == "unanswered":  # said by a thread beside the one that is silent
            return
        rank.heard_s = now_s
        rank.said = f"{kind} {message.get('label') or message.get('phase') or ''}".strip()
        match kind:
            case "hello" | "done":
                rank.enter(None, now_s)
            case "phase" if message.get("phase") in tuple(Phase):
                rank.enter(Phase(message["phase"]), now_s)
                rank.detail = str(message.get("detail", ""))
            case "mark":
                rank.waits_at = str(message.get("label"))
            case "block":
                rank.last_block = str(message.get("label") or message.get("kind"))
            case "failed":
                rank.has_failed = True
            case _:
                pass

    def mark_reached(self) -> str | None:
        """The label at which all ranks wait; None while one does not."""
        labels = {rank.waits_at for rank in self.ranks.values()}
        return labels.pop() if len(labels) == 1 else None

    def release(self, now_s: float) -> None:
        """All ranks go on from their mark."""
        for rank in self.ranks.values():
            rank.waits_at, rank.heard_s = None, now_s

    def deadline_s(self) -> float | None:
        """When does the next phase's limit pass? None: nothing is expected."""
        deadlines = [rank.deadline_s(self.limits) for rank in self.ranks.values()]
        return min((each for each in deadlines if each is not None), default=None)

    def expiry(self, now_s: float, stopped: frozenset[int]) -> Expiry | None:
        """Whose silence has outlasted a limit? `stopped`: ranks that the kernel shows stopped."""
        deadline_s = self.deadline_s()
        if deadline_s is None or now_s < deadline_s:
            return None
        silent = self._silent_rank(stopped)
        rank = self.ranks[silent]
        phase = rank.phase or Phase.RENDEZVOUS
        others = {other.waits_at for other in self.ranks.values() if other is not rank} - {None}
        in_all = " in all" if phase in rank.spent_s else ""
        parts = [
            f"{phase.value} took longer than {limit_s(self.limits, phase):g} s{in_all}",
            f"rank {silent} was silent for {now_s - rank.heard_s:.1f} s, last said: {rank.said}",
        ]
        if rank.detail:
            parts.append(f"at {rank.detail}")
        if silent in stopped:
            parts.append("its process is stopped")
        if others and rank.waits_at is None:
            parts.append(f"others wait at {', '.join(sorted(map(str, others)))}")
        parts.append(f"its last block: {rank.last_block or 'none in this trial'}")
        return Expiry(rank=silent, phase=phase, message="; ".join(parts), waits_at=rank.waits_at)

    def stall(self, number: int, message: str) -> Expiry:
        """This rank told that nothing goes on any more."""
        phase = self.ranks[number].phase or Phase.MEASURE
        return Expiry(rank=number, phase=phase, message=message)

    def _silent_rank(self, stopped: frozenset[int]) -> int:
        """Stopped by a signal, else waiting for a storage, else not at the mark that others
        reached, else oldest to speak."""
        expected = [n for n, rank in self.ranks.items() if rank.phase is not None]
        waiting = [n for n in expected if self.ranks[n].waits_at is not None]
        missing = [n for n in expected if n not in waiting]
        on_storage = [n for n in expected if self.ranks[n].waits_for_storage]
        candidates = [n for n in expected if n in stopped] or on_storage or missing or expected
        return min(candidates, key=lambda n: self.ranks[n].heard_s)


def limit_s(limits: PhaseLimits, phase: Phase) -> float:
    """How long may this phase last?"""
    match phase:
        case Phase.RENDEZVOUS:
            return limits.rendezvous_s
        case Phase.WARM_UP:
            return limits.warm_up_s
        case Phase.MEASURE:
            return limits.measure_s
        case Phase.TEARDOWN:
            return limits.teardown_s
        case unknown:
            assert_never(unknown)
