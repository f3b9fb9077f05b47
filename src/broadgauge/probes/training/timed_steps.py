"""When did each step of a block begin, how long did it take, and what lay between two of them?"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Saver(Protocol):
    """Who saves checkpoints between steps."""

    def is_due(self, index: int) -> bool:
        """Is one saved after step `index`? All ranks say the same."""
        ...

    def save(self, index: int) -> None:
        """Comes back when this rank's training may go on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSteps:
    """A block of steps, by step."""

    seconds: tuple[float, ...]
    losses: tuple[float | None, ...]
    """None: not finite."""
    began_s: tuple[float, ...]
    """On the host's monotonic clock."""
    gaps_s: tuple[float, ...]
    """Between its end and the begin of the next; 0 where nothing is saved."""


class StepMoments:
    """Lays the device's times on the host's clock.

    A GPU's steps are queued before they run, so the host does not see them begin; but at the begin
    of a block and after a save the device has done all its work, and both clocks meet.
    """

    def __init__(self) -> None:
        self._meetings_s = {0: time.monotonic()}
        """By the number of steps before."""

    def saved(self, *, after: int) -> None:
        """The gap behind so many steps ends now."""
        self._meetings_s[after] = time.monotonic()

    def timed(self, intervals_s: Sequence[float], losses: Sequence[float]) -> TimedSteps:
        """`intervals_s`: steps and gaps, as they came."""
        seconds, gaps_s, began_s = [], [], []
        rest_s, now_s = iter(intervals_s), 0.0
        for number in range(len(losses)):
            now_s = self._meetings_s.get(number, now_s)
            began_s.append(now_s)
            seconds.append(next(rest_s))
            now_s += seconds[-1]
            gaps_s.append(next(rest_s) if number + 1 in self._meetings_s else 0.0)
        return TimedSteps(
            seconds=tuple(seconds),
            losses=tuple(loss if math.isfinite(loss) else None for loss in losses),
            began_s=tuple(began_s),
            gaps_s=tuple(gaps_s),
        )
