"""How often is a rate measured, and which of the attempts say something of the shaper?

A core that the hypervisor takes away for 15 ms takes them from every stream: a link's bucket holds
a tenth of a millisecond, so no later moment makes up for it. Such an attempt may still show that
the rate is reached, or exceeded; that it is missed, only where more is missing than was stolen.
Else it says nothing, and one more is made.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_ATTEMPTS = 8
Attempt = dict[str, float]
"""`ratio`: delivered over expected. `stalled_ratio`: of the time in which was counted, the largest
part in which a core may have been away. `stolen_ratio`: of all core time meanwhile."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """Of all processors since the machine started. Source: /proc/stat in proc(5)."""

    stolen: int
    busy: int
    all: int

    @classmethod
    def now(cls) -> "Ticks":
        ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle = ticks[3] + ticks[4]
        return cls(ticks[7], sum(ticks) - idle, sum(ticks))

    def __sub__(self, other: "Ticks") -> "Ticks":
        return Ticks(self.stolen - other.stolen, self.busy - other.busy, self.all - other.all)

    @property
    def busy_ratio(self) -> float:
        return self.busy / max(self.all, 1)


def attempt(ratio: float, counted_s: float, ticks: Ticks) -> Attempt:
    """Of what was delivered in `counted_s`, in the time of these ticks, which may be longer."""
    return {
        "ratio": ratio,
        "stalled_ratio": stalled_ratio(ticks.stolen, counted_s),
        "stolen_ratio": ticks.stolen / max(ticks.all, 1),
    }


def stalled_ratio(stolen_ticks: int, seconds: float) -> float:
    """As if cores were taken away one after the other, and a last tick had not been counted, since
    readings are rounded down. Nothing where nothing was stolen."""
    stalled_s = (stolen_ticks + 1) / os.sysconf("SC_CLK_TCK") if stolen_ticks else 0.0
    return min(stalled_s / seconds, 1.0)


def num_reached(attempts: Sequence[Attempt], least: float) -> int:
    """However much was stolen: that takes from a rate and never gives."""
    return sum(each["ratio"] >= least for each in attempts)


def num_missed(attempts: Sequence[Attempt], least: float) -> int:
    """By more than was stolen."""
    return sum(each["ratio"] < least * (1 - each["stalled_ratio"]) for each in attempts)


def is_open(attempts: Sequence[Attempt], least: float, agreeing: int = 2) -> bool:
    """May one more decide? One that is good by luck proves nothing, and one that the host disturbed
    disproves nothing."""
    is_decided = max(num_reached(attempts, least), num_missed(attempts, least)) >= agreeing
    return not is_decided and len(attempts) < MOST_ATTEMPTS


def until_they_agree(
    measure: Callable[[int], Attempt], least: float, agreeing: int = 2
) -> list[Attempt]:
    """Two or three attempts, more only where what was stolen explains those that missed. `measure`
    is given the attempt's number."""
    seen: list[Attempt] = []
    while is_open(seen, least, agreeing):
        seen.append(measure(len(seen)))
    return seen
