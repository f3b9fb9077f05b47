"""Does P2P go over NVLink or PCIe? By NCCL's table of the machine, each node's own.

A GPU is `GPU/60` up to 2.20, `GPU/0-60` later, and the number is its bus in hexadecimal. From 2.30
on the table has no ranks: then a rank's `Init START` names its bus. Source: NVIDIA/nccl
src/graph/topo.cc, paths.cc.
"""

import re
from typing import TYPE_CHECKING

from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, ProcessFacts

if TYPE_CHECKING:
    from broadgauge.doctor.log.gathering import Gatherer, Told

BY_NVLINK = frozenset({"NVL", "NVB"})
"""NVB: over the NVLinks of a GPU between."""
BY_PCIE = frozenset({"PIX", "PXB", "PXN", "P2C", "PHB", "SYS"})
_CELL = re.compile(r"GPU/(?P<gpu>[0-9A-Fa-f-]{1,24}) \(\d+/[\d.]+/(?P<distance>[A-Z0-9]{3})\)")


def bus_of(gpu: str) -> str:
    """`0-60` → `60`."""
    return gpu.rpartition("-")[2].lower()


def take_topology(_: "Gatherer", told: "Told") -> None:
    """A table begins: what the last one said of this process's node is out of date."""
    told.process.gpu_of_rank.clear()
    told.process.gpu_distances.clear()


def take_gpu(gatherer: "Gatherer", told: "Told") -> None:
    gatherer.room.put(told.process.gpu_of_rank, told.number("rank"), bus_of(told.fields["gpu"]))


def take_paths(gatherer: "Gatherer", told: "Told") -> None:
    origin = bus_of(told.fields["gpu"])
    for cell in _CELL.finditer(f"GPU/{told.fields['cells']}"):
        pair = (origin, bus_of(cell["gpu"]))
        gatherer.room.put(told.process.gpu_distances, pair, cell["distance"])


def distance_now(process: ProcessFacts, sender: int, receiver: int) -> str | None:
    """By the table that this process printed last; None: it names no such ranks."""
    gpus = process.gpu_of_rank
    return process.gpu_distances.get((gpus.get(sender, ""), gpus.get(receiver, "")))


def p2p_distances(
    reading: LogReading, communicator: CommunicatorFacts, pair: tuple[int, int]
) -> dict[str | None, str]:
    """How far apart the pair's GPUs are → the line of a channel between them; None: unknown."""
    told: dict[str | None, str] = {}
    for distance, line in communicator.p2p_lines.get(pair, {}).items():
        told.setdefault(distance or _by_buses(reading, communicator, pair), line)
    return told


def all_p2p_distances(reading: LogReading, communicator: CommunicatorFacts) -> set[str | None]:
    """Of every pair with P2P; None among them: some pair's is unknown."""
    return {
        distance
        for pair in communicator.p2p_lines
        for distance in p2p_distances(reading, communicator, pair)
    }


def _by_buses(
    reading: LogReading, communicator: CommunicatorFacts, pair: tuple[int, int]
) -> str | None:
    buses = communicator.buses
    key = (buses.get(pair[0], ""), buses.get(pair[1], ""))
    for rank in pair:
        speaker = communicator.members.get(rank)
        process = None if speaker is None else reading.processes.get(speaker)
        if process is not None and key in process.gpu_distances:
            return process.gpu_distances[key]
    return None
