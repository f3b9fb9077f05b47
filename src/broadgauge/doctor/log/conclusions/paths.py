"""Do the GPUs of one node talk the shortest way, and is NVLink's multicast used?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, ProcessFacts, Way
from broadgauge.doctor.log.job import (
    NO_P2P_LEVELS,
    first_place,
    is_between_nodes,
    is_of_network,
    is_on,
    largest,
    nodes_of_ranks,
    said,
    variable,
)
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.listing import listed

Pair = tuple[int, int]
_MOST_PAIRS = 4
_FEWEST_NVLS_RANKS = 3
"""NCCL uses multicast from three GPUs of a node on. Source: NVIDIA/nccl src/transport/nvls.cc."""


def p2p_not_used(reading: LogReading) -> Iterator[Conclusion]:
    """GPUs of one node that talk through the host's memory, or over the network."""
    communicator = largest(reading)
    if communicator is None:
        return
    ways = _inside(reading, communicator)
    direct = [pair for pair, of_pair in ways.items() if Way.P2P in of_pair]
    for rule, slow in (
        ("p2p-not-used", [p for p, w in ways.items() if Way.P2P not in w and Way.SHM in w]),
        ("network-inside-node", [p for p, w in ways.items() if any(map(is_of_network, w))]),
    ):
        if slow:
            yield _not_direct(reading, communicator, rule, slow, has_direct=bool(direct))


def _inside(reading: LogReading, communicator: CommunicatorFacts) -> dict[Pair, set[Way]]:
    """By pair of ranks on one node: its ways."""
    nodes = nodes_of_ranks(reading, communicator)
    return {
        pair: set(ways)
        for pair, ways in communicator.paths.items()
        if is_between_nodes(nodes, pair) is False
    }


def _not_direct(
    reading: LogReading,
    communicator: CommunicatorFacts,
    rule: str,
    slow: list[Pair],
    *,
    has_direct: bool,
) -> Conclusion:
    is_network = rule == "network-inside-node"
    pairs = listed([f"{a} → {b}" for a, b in sorted(slow)], most=_MOST_PAIRS)
    over = "the network" if is_network else "the host's memory"
    cause, fix, confidence = _why(reading, is_network=is_network, has_direct=has_direct)
    ways = (Way.SOCKETS, Way.NETWORK, Way.GDRDMA) if is_network else (Way.SHM,)
    keys = [(way, is_between) for way in ways for is_between in (False, True)]
    lines = [communicator.lines[key] for key in keys if key in communicator.lines]
    return Conclusion(
        place=lines[0][0] if lines else communicator.place,
        finding=Finding(
            rule=rule,
            severity=Severity.WARNING,
            symptom=f"ranks of one node talk over {over}: {pairs}",
            evidence=(
                *quoted(lines),
                f"{len(slow)} of {len(_inside(reading, communicator))} pairs inside nodes",
            ),
            cause=cause,
            fix=fix,
            confidence=confidence,
        ),
    )


_Why = tuple[str, str, Confidence]
"""Cause, fix, and how sure."""


def _why(reading: LogReading, *, is_network: bool, has_direct: bool) -> _Why:
    asked = _asked_for(list(reading.processes.values()), is_network=is_network)
    if asked is not None:
        return asked
    if next(said(reading, "P2P is disabled between"), None) is not None:
        return (
            "the driver refuses P2P between GPUs that are connected: ACS or the IOMMU redirects "
            "it, a vGPU, or a fault of the hardware",
            "`nvidia-smi topo -p2p r`; switch ACS off on the PCIe bridges; see the line itself",
            Confidence.LIKELY,
        )
    if is_network:
        return (
            "NCCL takes these ranks for two nodes, can't use /dev/shm between their containers, or "
            "finds the NICs faster than the way through the host's memory",
            "one container for all ranks of a node, or a shared /dev/shm and the same hostname",
            Confidence.POSSIBLE,
        )
    if has_direct:
        return (
            "other pairs of the node use P2P: these GPUs are on different processor sockets, or "
            "the path between them is disabled",
            "`nvidia-smi topo -m`: is it SYS between these? `nvidia-smi topo -p2p r`: is it OK?",
            Confidence.LIKELY,
        )
    return (
        "GPUs without NVLink whose driver has no P2P (GeForce), ACS or the IOMMU in the way, or "
        "containers that can't see each other's GPUs",
        "`nvidia-smi topo -p2p r`: does the driver allow it? In containers: all GPUs of the node "
        "visible to each, ACS off on bare metal",
        Confidence.POSSIBLE,
    )


def _asked_for(processes: list[ProcessFacts], *, is_network: bool) -> _Why | None:
    """By a variable."""
    off, level, shm = (
        variable(processes, f"NCCL_{name}") for name in ("P2P_DISABLE", "P2P_LEVEL", "SHM_DISABLE")
    )
    shm_words = f" and NCCL_SHM_DISABLE={shm} shared memory" if is_on(shm) and is_network else ""
    if is_on(off):
        return (
            f"NCCL_P2P_DISABLE={off} switches P2P off{shm_words}",
            "unset NCCL_P2P_DISABLE",
            Confidence.CERTAIN,
        )
    if level is not None and level.upper() in NO_P2P_LEVELS:
        return (
            f"NCCL_P2P_LEVEL={level} allows P2P for the nearest GPUs only{shm_words}",
            "unset NCCL_P2P_LEVEL, and measure both",
            Confidence.LIKELY,
        )
    if shm_words:
        return (
            f"NCCL_SHM_DISABLE={shm} leaves only the network where there is no P2P",
            "unset NCCL_SHM_DISABLE",
            Confidence.LIKELY,
        )
    return None


def nvls_not_used(reading: LogReading) -> Iterator[Conclusion]:
    """The switch could add up for the GPUs (NVLS), and the communicator does not let it."""
    communicator = largest(reading)
    able = [p for p in reading.processes.values() if p.has_multicast]
    if communicator is None or not able or communicator.has_nvls:
        return
    local = max(communicator.local_ranks.values(), default=communicator.num_ranks or 0)
    if communicator.num_nvls_channels != 0 or local < _FEWEST_NVLS_RANKS:
        return
    value = variable(able, "NCCL_NVLS_ENABLE")
    is_off = value is not None and not is_on(value)
    yield Conclusion(
        place=first_place(able),
        finding=Finding(
            rule="nvls-not-used",
            severity=Severity.INFO,
            symptom="NVLink SHARP (NVLS) is there and not used",
            evidence=("0 nvls channels", *_enabled(able)),
            cause=(
                f"NCCL_NVLS_ENABLE={value} switches it off"
                if is_off
                else "the fabric manager, the size of the communicator, or the chosen algorithm"
            ),
            fix=(
                "unset NCCL_NVLS_ENABLE: 8 H100 or H200 then give about 480 instead of 370 GB/s "
                "busbw (NVIDIA/nccl-tests issue 212)"
            ),
            confidence=Confidence.CERTAIN if is_off else Confidence.POSSIBLE,
        ),
    )


def _enabled(processes: list[ProcessFacts]) -> tuple[str, ...]:
    value = variable(processes, "NCCL_NVLS_ENABLE")
    return () if value is None else (f"NCCL_NVLS_ENABLE={value}",)
