"""Which fact does a line add? Who takes what each `tells:` of the rules says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broadgauge.doctor.log import channel_lines, process_lines
from broadgauge.doctor.log.communicators import Communicators, Holder
from broadgauge.doctor.log.facts import (
    CommunicatorFacts,
    LogReading,
    Place,
    ProcessFacts,
    Speaker,
)
from broadgauge.doctor.log.room import MOST_PROCESSES, Room, is_rank
from broadgauge.doctor.log.topology import take_gpu, take_paths, take_topology


@dataclass(slots=True)
class Told:
    """One line of a process, as a rule understood it."""

    fields: Mapping[str, str]
    text: str
    place: Place
    process: ProcessFacts
    holder: Holder

    def number(self, name: str) -> int:
        return int(self.fields[name])


@dataclass(slots=True)
class Gatherer:
    """Takes in what lines tell, in their order."""

    reading: LogReading
    room: Room = field(default_factory=Room)
    communicators: Communicators = field(init=False)

    def __post_init__(self) -> None:
        self.communicators = Communicators(self.reading, self.room)

    def process(self, speaker: Speaker, device: int | None, place: Place) -> ProcessFacts | None:
        """Who speaks; heard of for the first time, perhaps. None: one too many."""
        known = self.reading.processes.get(speaker)
        if known is None:
            if len(self.reading.processes) >= MOST_PROCESSES:
                self.room.num_left_out += 1
                return None
            known = ProcessFacts(speaker=speaker, place=place)
            self.reading.processes[speaker] = known
        known.last_place = place
        if device is not None and device >= 0 and device not in known.devices:
            self.room.add(known.devices, device)
        return known

    def finish(self) -> None:
        """A process heard once, in a line that ran into another's, before its own first line."""
        processes = self.reading.processes
        doubtful = [each for each in processes.values() if each.last_place == each.place]
        renamed: dict[Speaker, Speaker] = {}
        for process in doubtful:
            host, pid = process.speaker
            names = (Speaker(host[begin:], pid) for begin in range(1, len(host)))
            known = next((name for name in names if name in processes), None)
            if known is not None:
                renamed[process.speaker] = known
        for speaker in renamed:
            del processes[speaker]
        self.communicators.rename(renamed)
        self.communicators.join_unnamed()

    def take(self, tells: str, told: Told) -> None:
        """Raises KeyError where a rule tells what nobody gathers: a test holds that none does."""
        HANDLERS[tells](self, told)

    def communicator(self, told: Told, highest_rank: int) -> CommunicatorFacts:
        return self.communicators.spoken_of(told.holder, highest_rank, told.place)


Handler = Callable[[Gatherer, Told], None]


def _communicator(gatherer: Gatherer, told: Told) -> None:
    rank, num_ranks = told.number("rank"), told.number("ranks")
    if not is_rank(rank, num_ranks):
        return
    communicator = gatherer.communicators.named(
        told.holder, told.fields["comm"], rank, num_ranks, told.place
    )
    communicator.num_nodes = told.number("nodes")
    communicator.has_mnnvl = communicator.has_mnnvl or told.fields.get("mnnvl") == "1"
    gatherer.room.put(communicator.local_ranks, rank, told.number("local_ranks"))


def _init_start(gatherer: Gatherer, told: Told) -> None:
    if is_rank(told.number("rank"), told.number("ranks")):
        gatherer.communicators.begin(told.holder, dict(told.fields), told.place)


def _init_complete(gatherer: Gatherer, told: Told) -> None:
    if is_rank(told.number("rank"), told.number("ranks")):
        gatherer.communicators.complete(told.holder, dict(told.fields), told.place)


def _init_timing(_: Gatherer, told: Told) -> None:
    told.process.init_s = max(told.process.init_s or 0.0, float(told.fields["total"]))


def _bootstrap_timing(_: Gatherer, told: Told) -> None:
    told.process.bootstrap_s = max(told.process.bootstrap_s or 0.0, float(told.fields["total"]))


HANDLERS: Mapping[str, Handler] = {
    "noted": lambda _gatherer, _told: None,
    "network": process_lines.take_network,
    "bootstrap": process_lines.take_bootstrap,
    "socket_interfaces": process_lines.take_socket_interfaces,
    "socket_threads": process_lines.take_socket_threads,
    "default_speed": process_lines.take_default_speed,
    "adapters": process_lines.take_adapters,
    "adapter": process_lines.take_adapter,
    "merged_adapter": process_lines.take_merged_adapter,
    "plugin_loaded": process_lines.take_plugin_loaded,
    "plugin_missing": process_lines.take_plugin_missing,
    "plugin_failed": process_lines.take_plugin_failed,
    "plugin_named": process_lines.take_plugin_named,
    "provider": process_lines.take_provider,
    "plugin_assigned": process_lines.take_plugin_assigned,
    "gdr_adapter": process_lines.take_gdr_adapter,
    "gdr_pair": process_lines.take_gdr_pair,
    "dma_buf": process_lines.take_dma_buf,
    "channel": channel_lines.take_channel,
    "nvls": channel_lines.take_nvls,
    "multicast": process_lines.take_multicast,
    "nvswitch": process_lines.take_nvswitch,
    "ring_order": channel_lines.take_ring_order,
    "trees": channel_lines.take_trees,
    "connected": channel_lines.take_connected,
    "channel_counts": channel_lines.take_channel_counts,
    "communicator": _communicator,
    "init_start": _init_start,
    "init_complete": _init_complete,
    "init_timing": _init_timing,
    "bootstrap_timing": _bootstrap_timing,
    "version": process_lines.take_version,
    "variable": process_lines.take_variable,
    "gid": process_lines.take_gid,
    "nic_speed": process_lines.take_nic_speed,
    "ring_search": process_lines.take_ring_search,
    "topology": take_topology,
    "topology_gpu": take_gpu,
    "topology_paths": take_paths,
}
"""`tells:` of a rule → what is done with its fields."""
