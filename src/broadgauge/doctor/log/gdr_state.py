"""Does GPUDirect RDMA carry what a process sends? On, off, or unknown, by what its log tells."""

from enum import StrEnum

from broadgauge.doctor.log.facts import LogReading, ProcessFacts, Speaker, Way
from broadgauge.doctor.log.job import is_between_nodes, nodes_of_ranks

_OF_NICS = frozenset({Way.GDRDMA, Way.NETWORK})


class GdrState(StrEnum):
    """Of a process, a GPU and an adapter."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


def state_of(reading: LogReading, process: ProcessFacts) -> GdrState:
    """Of all that this process sends between nodes.

    A channel says it itself. Without channels: off where no adapter can, or none is near enough to
    any GPU; near enough is on, since NCCL then uses it. No line is unknown, never off.
    """
    ways = _ways(reading, process)
    if Way.GDRDMA in ways:
        return GdrState.ON
    if Way.NETWORK in ways:
        return GdrState.OFF
    can, near = process.gdr_by_adapter.values(), process.gdr_by_pair.values()
    if any(near):
        return GdrState.ON
    if (can and not any(can)) or near:
        return GdrState.OFF
    return GdrState.UNKNOWN


def state_of_adapter(reading: LogReading, process: ProcessFacts, adapter: str) -> GdrState:
    """Of one of its adapters: by what is said of it, or of all where it is the only one."""
    index = list(process.adapters).index(adapter) if adapter in process.adapters else None
    plain = adapter.partition(":")[0]
    names = {adapter, plain, str(index)}
    if any(process.gdr_by_adapter.get(name) is False for name in names):
        return GdrState.OFF
    near = [is_near for (_, name), is_near in process.gdr_by_pair.items() if name in names]
    if near:
        return GdrState.ON if any(near) else GdrState.OFF
    return state_of(reading, process) if len(process.adapters) == 1 else GdrState.UNKNOWN


def sends_between_nodes(reading: LogReading, process: ProcessFacts) -> bool:
    """Is any of its channels over RDMA listed?"""
    return not {Way.GDRDMA, Way.NETWORK}.isdisjoint(_ways(reading, process))


def channels_of(reading: LogReading, process: ProcessFacts) -> list[tuple[int, int, int]]:
    """(from, to, channel) that this process sends between nodes through the host's memory."""
    if "staged_channels" not in reading.memo:
        found: dict[Speaker, list[tuple[int, int, int]]] = {}
        for communicator in reading.communicators.values():
            for pair, ways in communicator.paths.items():
                sender = communicator.members.get(pair[0])
                if sender is not None and Way.NETWORK in ways:
                    channels = sorted(ways[Way.NETWORK])
                    found.setdefault(sender, []).extend((*pair, each) for each in channels)
        reading.memo["staged_channels"] = found
    staged: dict[Speaker, list[tuple[int, int, int]]] = reading.memo["staged_channels"]
    return staged.get(process.speaker, [])


def _ways(reading: LogReading, process: ProcessFacts) -> set[Way]:
    """That this process's ranks send between nodes, as far as nodes are known; where they send
    nothing there, what they receive."""
    if "ways_between_nodes" not in reading.memo:
        found: dict[Speaker, set[Way]] = {}
        received: dict[Speaker, set[Way]] = {}
        for communicator in reading.communicators.values():
            nodes = nodes_of_ranks(reading, communicator)
            for pair, ways in communicator.paths.items():
                if is_between_nodes(nodes, pair) is False:
                    continue
                for rank, by_speaker in zip(pair, (found, received), strict=True):
                    speaker = communicator.members.get(rank)
                    if speaker is not None:
                        by_speaker.setdefault(speaker, set()).update(_OF_NICS.intersection(ways))
        for speaker, ways_in in received.items():
            if not found.get(speaker):
                found[speaker] = ways_in
        reading.memo["ways_between_nodes"] = found
    by_sender: dict[Speaker, set[Way]] = reading.memo["ways_between_nodes"]
    return by_sender.get(process.speaker, set())
