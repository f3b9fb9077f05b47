"""Does GPUDirect RDMA carry what a process sends? On, off, or unknown, by what its log tells."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from broadgauge.doctor.log.facts import LogReading, ProcessFacts, Speaker, Way
from broadgauge.doctor.log.job import is_between_nodes, nodes_of_ranks

_OF_NICS = frozenset({Way.GDRDMA, Way.NETWORK})


class GdrState(StrEnum):
    """Of a process, a GPU and an adapter."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class GdrStates:
    """Of the processes of one reading; what all of them need is worked out once."""

    reading: LogReading

    def of_process(self, process: ProcessFacts) -> GdrState:
        """Of all that this process sends between nodes.

        A channel says it itself. Without channels: off where no adapter can, or none is near enough
        to any GPU; near enough is on, since NCCL then uses it. No line is unknown, never off.
        """
        ways = self._ways_between_nodes.get(process.speaker, set())
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

    def of_adapter(self, process: ProcessFacts, adapter: str) -> GdrState:
        """Of one of its adapters: by what is said of it, or of all where it is the only one."""
        index = list(process.adapters).index(adapter) if adapter in process.adapters else None
        plain = adapter.partition(":")[0]
        names = {adapter, plain, str(index)}
        if any(process.gdr_by_adapter.get(name) is False for name in names):
            return GdrState.OFF
        near = [is_near for (_, name), is_near in process.gdr_by_pair.items() if name in names]
        if near:
            return GdrState.ON if any(near) else GdrState.OFF
        return self.of_process(process) if len(process.adapters) == 1 else GdrState.UNKNOWN

    def sends_between_nodes(self, process: ProcessFacts) -> bool:
        """Is any of its channels over RDMA listed?"""
        ways = self._ways_between_nodes.get(process.speaker, set())
        return not _OF_NICS.isdisjoint(ways)

    def staged_channels(self, process: ProcessFacts) -> list[tuple[int, int, int]]:
        """(from, to, channel) that it sends between nodes through the host's memory."""
        return self._staged_channels.get(process.speaker, [])

    @functools.cached_property
    def _staged_channels(self) -> Mapping[Speaker, list[tuple[int, int, int]]]:
        found: dict[Speaker, list[tuple[int, int, int]]] = {}
        for communicator in self.reading.communicators.values():
            for pair, ways in communicator.paths.items():
                sender = communicator.members.get(pair[0])
                if sender is not None and Way.NETWORK in ways:
                    channels = sorted(ways[Way.NETWORK])
                    found.setdefault(sender, []).extend((*pair, each) for each in channels)
        return found

    @functools.cached_property
    def _ways_between_nodes(self) -> Mapping[Speaker, set[Way]]:
        """That ranks of a process send between nodes, as far as nodes are known; where they send
        nothing there, what they receive."""
        found: dict[Speaker, set[Way]] = {}
        received: dict[Speaker, set[Way]] = {}
        for communicator in self.reading.communicators.values():
            nodes = nodes_of_ranks(self.reading, communicator)
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
        return found
