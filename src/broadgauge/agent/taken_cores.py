"""Do others use this machine's cores just now? A short look, before anything is measured.

Two readings of the kernel's count of the cores that this process may use, and of what this process
and its ended children used: what is busy beside them is other programs'. What a hypervisor gave to
other machines is counted apart.
"""

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.supervisor.cpu_use import cpu_seconds

SHORTEST_LOOK_S = 0.3
"""Thirty of the kernel's ticks a core. Longer than the shortest trial of which this is said
(FOREIGN_ELAPSED_S of advise/limits.py; a test holds that)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoresLook:
    """One reading, in seconds since the machine, or this process, started."""

    moment_s: float
    programs_s: float
    """User and system time, as of trials: packets are nobody's."""
    stolen_s: float
    own_s: float
    cores_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenCores:
    """What others had of the cores between two readings."""

    foreign_busy_ratio: float
    """Of all the cores' time: other programs."""
    stolen_ratio: float
    """The same: other virtual machines."""
    elapsed_s: float
    cores_count: int


def look(stat: Path = Path("/proc/stat")) -> CoresLook | None:
    """None: the kernel does not show the cores that this process may use."""
    moment_s = time.monotonic()
    try:
        seconds = cpu_seconds(stat)
    except (OSError, ValueError):
        return None
    cores = os.sched_getaffinity(0)
    if not cores <= seconds.keys():
        return None
    return CoresLook(
        moment_s=moment_s,
        programs_s=sum(sum(seconds[core][:2]) for core in cores),
        stolen_s=sum(seconds[core][3] for core in cores),
        own_s=sum(os.times()[:4]),
        cores_count=len(cores),
    )


def taken_since(
    before: CoresLook | None, look_again: Callable[[], CoresLook | None] = look
) -> TakenCores | None:
    """What others had since then; waits where that is too short ago to tell. None: unknown."""
    if before is None:
        return None
    left_s = before.moment_s + SHORTEST_LOOK_S - time.monotonic()
    if left_s > 0:
        _pause(left_s)
    after = look_again()
    return None if after is None else taken_between(before, after)


def _pause(pause_s: float) -> None:
    """Not time.sleep, which asks for a moment: EINVAL where a library fakes the clocks."""
    select.select([], [], [], pause_s)


def taken_between(before: CoresLook, after: CoresLook) -> TakenCores | None:
    """None where the cores changed meanwhile, or no time went by."""
    elapsed_s = after.moment_s - before.moment_s
    if before.cores_count != after.cores_count or elapsed_s <= 0:
        return None
    cores_s = elapsed_s * after.cores_count
    foreign_s = (after.programs_s - before.programs_s) - (after.own_s - before.own_s)
    return TakenCores(
        foreign_busy_ratio=min(1.0, max(0.0, foreign_s / cores_s)),
        stolen_ratio=min(1.0, max(0.0, (after.stolen_s - before.stolen_s) / cores_s)),
        elapsed_s=elapsed_s,
        cores_count=after.cores_count,
    )
