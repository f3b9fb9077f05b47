"""Who used the cores? The kernel's count of each core, and of each rank."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")

RankOnNode = tuple[int, int | None]
"""Its node, and its pid while it runs."""


CoreSeconds = tuple[float, float, float, float]
"""User, system and softirq time, and what the hypervisor gave to other machines meanwhile."""


_UNKNOWN = (None, None, None, None)


def cpu_seconds(stat: Path = Path("/proc/stat")) -> dict[int, CoreSeconds]:
    """How long was each core in each mode since the machine started?

    Nothing where a core that this process may use is missing: lxcfs shows a container its cores
    numbered from 0, and whose figures stand under a number is then not known. Hardware interrupts
    count as system. Source: proc_stat(5); 10 ms ticks mostly.
    """
    found: dict[int, CoreSeconds] = {}
    for line in stat.read_text().splitlines():
        if not line.startswith("cpu"):
            break
        name, *fields = line.split()
        if name == "cpu":
            continue
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
        found[int(name[3:])] = (
            (user + nice) * _TICK_S,
            (system + irq) * _TICK_S,
            softirq * _TICK_S,
            steal * _TICK_S,
        )
    return found if os.sched_getaffinity(0) <= found.keys() else {}


def node_seconds(
    cores: Sequence[int], seconds: Mapping[int, CoreSeconds]
) -> tuple[float | None, ...]:
    """The four figures summed over a node's cores; each None where a core was not counted."""
    if not cores or not seconds.keys() >= set(cores):
        return _UNKNOWN
    return tuple(sum(column) for column in zip(*(seconds[core] for core in cores), strict=True))


def ranks_seconds(
    node_cores: Sequence[Sequence[int]], ranks: Sequence[RankOnNode]
) -> tuple[float | None, ...]:
    """How long did the ranks on each node's cores run so far? None where one has ended.

    Nodes that share cores share the figure, as they share the cores' own.
    """
    used = [(node, None if pid is None else process_seconds(pid)) for node, pid in ranks]
    found: list[float | None] = []
    for cores in node_cores:
        here = [seconds for node, seconds in used if not set(cores).isdisjoint(node_cores[node])]
        known = [seconds for seconds in here if seconds is not None]
        found.append(sum(known) if len(known) == len(here) else None)
    return tuple(found)


def process_seconds(pid: int) -> float | None:
    """User and system time of all threads, and of the children that ended and were waited for.

    Children that still live are not looked for: the kernel lists them by thread of the parent,
    a file for each of a rank's dozens of threads, which is too slow at a mark. The probes start no
    children, and a user's command begins and ends between two marks; only what it leaves behind
    is not counted. None: there is no such process. Source: proc_pid_stat(5), fields 14 to 17.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return sum(map(int, text[text.rindex(")") + 2 :].split()[11:15])) * _TICK_S
