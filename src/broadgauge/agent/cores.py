"""Which cores does each node get?"""

import os
from collections.abc import Sequence
from pathlib import Path

_TOPOLOGY = "/sys/devices/system/cpu/cpu{core}/topology/{name}"


def cores_by_neighbourhood() -> tuple[int, ...]:
    """Which cores may this process use, the two threads of a core and a socket's side by side?

    A plain range would give one node the first and another the second threads of the same cores.
    """
    return tuple(sorted(os.sched_getaffinity(0), key=_place_of))


def share_out(
    cores: Sequence[int], num_nodes: int, wanted: int
) -> tuple[tuple[tuple[int, ...], ...], str | None]:
    """Each node's cores, `wanted` of them where there are enough; and what the user should know.

    Every node gets as many as every other. With more nodes than cores, nodes share one.
    """
    each = max(1, min(wanted, len(cores) // num_nodes))
    shared = tuple(
        tuple(cores[(node * each + place) % len(cores)] for place in range(each))
        for node in range(num_nodes)
    )
    if num_nodes > len(cores):
        return shared, (
            f"{num_nodes} nodes share {len(cores)} cores: what one node computes slows another"
        )
    if each < wanted:
        return shared, (
            f"a node gets {each} of {wanted} cores asked for: {len(cores)} for {num_nodes} nodes"
        )
    return shared, None


def hold_to_cores(cores: Sequence[int]) -> None:
    """Hold this process, and what it starts, to these cores, where waking preempts nobody.

    A rank's threads share a core here. Gloo's network thread spins on a message until another
    thread of the rank has asked for it; when the message wakes it, it would push that thread off
    the core and spin until the kernel's next tick, 4 ms later, in up to half of small collectives
    (docs/measurements.md). With cores to spare it changes nothing. Source: sched(7), SCHED_BATCH.
    """
    os.sched_setaffinity(0, cores)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _place_of(core: int) -> tuple[int, int, int]:
    return (_topology(core, "physical_package_id"), _topology(core, "core_id"), core)


def _topology(core: int, name: str) -> int:
    try:
        return int(Path(_TOPOLOGY.format(core=core, name=name)).read_text())
    except (OSError, ValueError):
        return 0
