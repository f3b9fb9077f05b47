"""Has a job stopped going on? By the pace of what it says, and where it stands. No I/O, no clock.

A long silence alone is no hang: checkpoints and evaluations take their time, too. So once a silence
is long for this job, its ranks are asked where they stand, and it is a hang when they stand there
unchanged; a rank that works there without communication is given longer.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from broadgauge.messages.stacks import Activity, RankStack

FIRST_GAP = 3
"""As many times the shortest stall, where the second one has not come yet."""
USUAL_GAPS = 20
"""As many usual gaps are a long silence."""
LONGEST_GAPS = 3
"""As many of the longest: what was once a checkpoint's may come again."""
OUTPUT_QUIET_S = 30.0
"""Who wrote anything at all within that time, is at something."""
LOOKS = 3
"""Unchanged in so many looks at the stacks, one after the other."""
LOOK_RATIO = 0.1
"""Of the limit, between two looks."""
WORKING_RATIO = 0.3
"""Of a core, in a rank that does not communicate: it may compute, load or write."""
PATIENCE = 3
"""As many limits, where the stacks are not known or a rank works."""
_KEPT_GAPS = 200


@dataclass(slots=True)
class Pace:
    """When does something come, usually?"""

    stall_s: float
    last_s: float | None = None
    gaps_s: "deque[float]" = field(default_factory=lambda: deque(maxlen=_KEPT_GAPS))
    longest_s: float = 0.0

    def comes(self, now_s: float, count: int = 1) -> None:
        """`count`: so many since the last time that this was told."""
        if self.last_s is not None:
            gap_s = (now_s - self.last_s) / count
            self.gaps_s.extend([gap_s] * min(count, _KEPT_GAPS))
            self.longest_s = max(self.longest_s, gap_s)
        self.last_s = now_s

    def pauses(self) -> None:
        """What comes next is at no pace with what came last."""
        self.last_s = None

    @property
    def usual_s(self) -> float | None:
        """None: not known yet."""
        return median(self.gaps_s) if self.gaps_s else None

    def limit_s(self) -> float:
        """From which silence on is it long for this job?"""
        usual_s = self.usual_s
        if usual_s is None:
            return FIRST_GAP * self.stall_s
        return max(self.stall_s, USUAL_GAPS * usual_s, LONGEST_GAPS * self.longest_s)

    def silence_s(self, now_s: float) -> float:
        """0 where nothing is waited for."""
        return 0.0 if self.last_s is None else now_s - self.last_s

    def words(self, now_s: float) -> str:
        """`for 61.0 s, where one came every 0.5 s`."""
        usual_s = self.usual_s
        before = "after the first" if usual_s is None else f"where one came every {usual_s:.2g} s"
        return f"for {self.silence_s(now_s):.1f} s, {before}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StallSample:
    """Where the ranks of a node stood, and what they had used of the cores."""

    at_s: float
    num_ranks: int
    """Of the node; some may have ended."""
    stacks: tuple[RankStack, ...]
    cpu_s: tuple[float, ...]

    @property
    def is_known(self) -> bool:
        """Is it known of every rank where it stands?"""
        return len(self.stacks) == self.num_ranks and all(each.frames for each in self.stacks)


@dataclass(slots=True)
class StallWatch:
    """Told of samples, output and looks, it says when a job hangs."""

    pace: Pace
    output_s: float
    """When anything at all was last written."""
    looks: list[StallSample] = field(default_factory=list)

    def sample(self, now_s: float, count: int = 1) -> None:
        self.pace.comes(now_s, count)
        self.output(now_s)

    def output(self, now_s: float) -> None:
        self.output_s = now_s
        self.looks.clear()

    def wants_look(self, now_s: float) -> bool:
        """Is the silence long, and the last look some time ago?"""
        limit_s = self.pace.limit_s()
        if self.pace.silence_s(now_s) < limit_s:
            return False
        if now_s - self.output_s < min(limit_s, OUTPUT_QUIET_S):
            return False
        return not self.looks or now_s - self.looks[-1].at_s >= LOOK_RATIO * limit_s

    def look(self, look: StallSample) -> bool:
        """Is it a hang, by this look too?"""
        if self.looks and not _is_alike(self.looks[-1].stacks, look.stacks):
            self.looks.clear()
        self.looks.append(look)
        if len(self.looks) < LOOKS:
            return False
        if look.is_known and not self._works():
            return True
        return self.pace.silence_s(look.at_s) >= PATIENCE * self.pace.limit_s()

    def _works(self) -> bool:
        """Does a rank compute where it stands, outside communication?"""
        first, last = self.looks[0], self.looks[-1]
        elapsed_s = last.at_s - first.at_s
        return any(
            stack.activity is Activity.ELSEWHERE and after - before > WORKING_RATIO * elapsed_s
            for stack, before, after in zip(last.stacks, first.cpu_s, last.cpu_s, strict=True)
        )


def _is_alike(one: Sequence[RankStack], other: Sequence[RankStack]) -> bool:
    return [(each.rank, each.frames) for each in one] == [
        (each.rank, each.frames) for each in other
    ]
