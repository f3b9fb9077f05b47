"""Which way did NCCL take from rank to rank? By what the doctor reads in its logs.

P2P goes over NVLink or PCIe; which one NCCL takes it for stands in its table of the machine
(subsystem GRAPH). NVLS is NVLink's switch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Way
from broadgauge.doctor.log.topology import BY_NVLINK, BY_PCIE, p2p_distances

SeenPath = Literal["nvlink", "pcie", "shm", "sockets", "network", "p2p"]
"""`p2p`: peer to peer, by NVLink or PCIe, NCCL does not say which. `network`: not TCP."""
_SEEN: dict[Way, SeenPath] = {
    Way.SHM: "shm",
    Way.SOCKETS: "sockets",
    Way.NETWORK: "network",
    Way.GDRDMA: "network",
    Way.COLLNET: "network",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One channel from a rank to another by one way."""

    channel: int
    way: SeenPath
    line: str
    """The first that says so of this way, without host, process and device."""


def connections_of(reading: LogReading) -> tuple[Connection, ...]:
    """Of all communicators, in the order made."""
    return tuple(
        connection
        for communicator in reading.communicators.values()
        for connection in _of_communicator(reading, communicator)
    )


def channels_count(connections: Iterable[Connection]) -> int:
    """How many channels carry something?"""
    return len({connection.channel for connection in connections})


def _of_communicator(reading: LogReading, communicator: CommunicatorFacts) -> Iterator[Connection]:
    for pair, ways in communicator.paths.items():
        for way, channels in ways.items():
            for seen, line in _seen(reading, communicator, pair, way):
                for channel in sorted(channels):
                    yield Connection(channel=channel, way=seen, line=line)
    if communicator.has_nvls:
        line = _line(communicator, Way.NVLS)
        for channel in range(max(1, communicator.num_nvls_channels or 0)):
            yield Connection(channel=channel, way="nvlink", line=line)


def _seen(
    reading: LogReading, communicator: CommunicatorFacts, pair: tuple[int, int], way: Way
) -> Iterator[tuple[SeenPath, str]]:
    if way in _SEEN:
        yield _SEEN[way], _line(communicator, way)
        return
    for distance, line in p2p_distances(reading, communicator, pair).items():
        if distance in BY_NVLINK:
            yield "nvlink", line
        else:
            yield ("pcie" if distance in BY_PCIE else "p2p"), line


def _line(communicator: CommunicatorFacts, way: Way) -> str:
    return next((text for (of, _), (_, text) in communicator.lines.items() if of is way), "")
