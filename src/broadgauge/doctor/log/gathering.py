"""Which fact does a line add? One small function for each `tells:` of the rules."""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from broadgauge.doctor.log.communicators import Communicators, Holder
from broadgauge.doctor.log.facts import (
    Adapter,
    CommunicatorFacts,
    LogReading,
    Place,
    ProcessFacts,
    Speaker,
    Way,
)
from broadgauge.doctor.log.masking import kept, masked_variable
from broadgauge.doctor.log.room import MOST_PROCESSES, MOST_RANKS, Room, is_rank
from broadgauge.doctor.log.topology import distance_now, take_gpu, take_paths, take_topology

_ITEM = re.compile(r"\[\d+\](?P<name>[^\s:]+):(?P<rest>\S*)")
_PROXY = re.compile(r"NET/.+/\d+\((?P<rank>\d+)\)")
_DEVICE = re.compile(r"(?P<device>NET/.+?/\d+)(?:\(|/|$)")
DEFAULT_PLUGIN = "libnccl-net.so"
"""What NCCL looks for by itself. Source: NVIDIA/nccl src/plugin/plugin_open.cc."""
MOST_VARIABLES = 500
"""Of one process; NCCL knows about 200."""
_MOST_INTERFACES = 64


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

    def take(self, tells: str, told: Told) -> None:
        """Raises KeyError where a rule tells what nobody gathers: a test holds that none does."""
        HANDLERS[tells](self, told)

    def communicator(self, told: Told, highest_rank: int) -> CommunicatorFacts:
        return self.communicators.spoken_of(told.holder, highest_rank, told.place)


Handler = Callable[[Gatherer, Told], None]


def _network(_: Gatherer, told: Told) -> None:
    told.process.network = told.fields["network"].strip()


def _bootstrap(gatherer: Gatherer, told: Told) -> None:
    words = told.fields["interfaces"].strip()
    name, _colon, address = re.sub(r"^\[\d+\]", "", words).partition(":")
    told.process.bootstrap = name or None
    _address(gatherer, told.process, name, address)


def _socket_interfaces(gatherer: Gatherer, told: Told) -> None:
    items = list(_ITEM.finditer(told.fields["interfaces"]))
    names = dict.fromkeys((*told.process.interfaces, *(match["name"] for match in items)))
    told.process.interfaces = tuple(names)[:_MOST_INTERFACES]
    for match in items:
        _address(gatherer, told.process, match["name"], match["rest"])


def _address(gatherer: Gatherer, process: ProcessFacts, interface: str, text: str) -> None:
    """`192.0.2.1<0>`, or `2001:db8::1<0>`."""
    address = text.partition("<")[0].strip()
    if address:
        gatherer.room.put(process.addresses, interface, address)


def _socket_threads(_: Gatherer, told: Told) -> None:
    told.process.socket_threads = told.number("threads")
    told.process.sockets_per_thread = told.number("sockets")


def _default_speed(gatherer: Gatherer, told: Told) -> None:
    path = told.fields["interface"].strip().rstrip(".")
    name = path.removesuffix("/speed").rsplit("/", 1)[-1]
    gatherer.room.add(told.process.default_speed_interfaces, name)


def _adapters(gatherer: Gatherer, told: Told) -> None:
    for match in _ITEM.finditer(told.fields["adapters"]):
        port, _slash, link = match["rest"].partition("/")
        name = f"{match['name']}:{port}"
        if name not in told.process.adapters:
            gatherer.room.put(told.process.adapters, name, Adapter(name, link or "unknown"))


def _adapter(gatherer: Gatherer, told: Told) -> None:
    name = f"{told.fields['name']}:{told.fields['port']}"
    speed = told.fields.get("speed")
    adapter = Adapter(name, told.fields["link"], None if speed is None else int(speed))
    gatherer.room.put(told.process.adapters, name, adapter)


def _merged_adapter(gatherer: Gatherer, told: Told) -> None:
    name = told.fields["name"]
    adapter = Adapter(name, "merged", told.number("speed"))
    gatherer.room.put(told.process.adapters, name, adapter)


def _plugin_loaded(_: Gatherer, told: Told) -> None:
    told.process.plugin = told.fields["plugin"].strip()


def _plugin_missing(gatherer: Gatherer, told: Told) -> None:
    plugin = told.fields["plugin"].strip().rstrip(".")
    gatherer.room.add(told.process.missing_plugins, plugin)
    if plugin != DEFAULT_PLUGIN:  # nobody else looks for one of another name
        told.process.variables.setdefault("NCCL_NET_PLUGIN", plugin)


def _plugin_named(_: Gatherer, told: Told) -> None:
    """Up to 2.20 NCCL prints this instead of the variable."""
    told.process.variables.setdefault("NCCL_NET_PLUGIN", told.fields["plugin"])


def _plugin_assigned(_: Gatherer, told: Told) -> None:
    told.process.network = told.fields["plugin"].strip()


def _gdr_adapter(gatherer: Gatherer, told: Told) -> None:
    is_on = told.fields["state"] == "Enabled"
    gatherer.room.put(told.process.gdr_by_adapter, told.fields["adapter"], is_on)


def _gdr_pair(gatherer: Gatherer, told: Told) -> None:
    pair = (told.fields["gpu"], told.fields["adapter"])
    gatherer.room.put(told.process.gdr_by_pair, pair, told.fields["state"] == "Enabled")


def _dma_buf(gatherer: Gatherer, told: Told) -> None:
    gatherer.room.add(told.process.dma_buf_devices, told.number("device"))


def way_of(via: str) -> Way:
    """`NET/IB/0/GDRDMA` → GDRDMA."""
    if via.startswith("P2P"):
        return Way.P2P
    if via.startswith("SHM"):
        return Way.SHM
    if via.startswith("COLLNET"):
        return Way.COLLNET
    if via.casefold().startswith("net/socket/"):
        return Way.SOCKETS
    return Way.GDRDMA if "/GDRDMA" in via else Way.NETWORK


class _Via(NamedTuple):
    """What follows `via` in a channel's line."""

    way: Way
    device: str | None
    """`NET/IB/0`."""
    proxy: int | None
    """Rank whose NIC is used."""


@functools.lru_cache(maxsize=1024)
def _parse_via(via: str) -> _Via:
    device, proxy = _DEVICE.match(via), _PROXY.match(via)
    return _Via(
        way_of(via),
        None if device is None else device["device"],
        None if proxy is None else int(proxy["rank"]),
    )


def _channel(gatherer: Gatherer, told: Told) -> None:
    fields = told.fields
    sender, receiver = int(fields["from_rank"]), int(fields["to_rank"])
    if not 0 <= min(sender, receiver) <= max(sender, receiver) < MOST_RANKS:
        return
    pair = (sender, receiver)
    via = _parse_via(fields["via"])
    communicator = gatherer.communicator(told, max(sender, receiver))
    ways = communicator.paths.get(pair)
    if ways is None:
        if not gatherer.room.take():
            return
        ways = communicator.paths[pair] = {}
    channels = ways.get(via.way)
    if channels is None:
        channels = ways[via.way] = set()
        is_network = via.device is not None or via.way is Way.COLLNET
        _first_line(communicator, (via.way, is_network), told)
    channel = int(fields["channel"])
    if channel in channels and via.way is not Way.P2P and via.proxy is None:
        devices = communicator.path_devices.get(pair)
        if via.device is None or (devices is not None and via.device in devices):
            return  # as the other of the two said
    gatherer.room.add(channels, channel)
    if via.way is Way.P2P:
        of_pair = communicator.p2p_lines.setdefault(pair, {})
        distance = distance_now(told.process, *pair)
        if distance not in of_pair:
            gatherer.room.put(of_pair, distance, kept(told.text))
    if via.device is not None:
        gatherer.room.add(communicator.path_devices.setdefault(pair, set()), via.device)
    if via.proxy is not None:
        gatherer.room.put(communicator.proxies, pair, via.proxy)


def _first_line(communicator: CommunicatorFacts, key: tuple[Way, bool], told: Told) -> None:
    if key not in communicator.lines:
        communicator.lines[key] = (told.place, kept(told.text))


def _nvls(gatherer: Gatherer, told: Told) -> None:
    communicator = gatherer.communicator(told, 0)
    communicator.has_nvls = True
    _first_line(communicator, (Way.NVLS, False), told)


def _multicast(_: Gatherer, told: Told) -> None:
    is_there = "not" not in told.fields["state"]
    told.process.has_multicast = bool(told.process.has_multicast) or is_there


def _ring_order(gatherer: Gatherer, told: Told) -> None:
    words = told.fields["ranks"].split()
    ranks = tuple(int(word) for word in words if word.isdecimal() and len(word) < 7)
    if ranks:
        communicator = gatherer.communicator(told, max(ranks))
        gatherer.room.put(communicator.rings, told.number("channel"), ranks)


def _trees(gatherer: Gatherer, told: Told) -> None:
    gatherer.communicator(told, 0).has_trees = True


def _connected(gatherer: Gatherer, told: Told) -> None:
    if told.fields["what"].startswith("rings"):
        communicator = gatherer.communicator(told, 0)
        gatherer.communicators.connected(told.holder, communicator)


def _channel_counts(gatherer: Gatherer, told: Told) -> None:
    communicator = gatherer.communicator(told, 0)
    communicator.num_channels = told.number("coll")
    communicator.num_nvls_channels = told.number("nvls")
    communicator.num_p2p_channels = told.number("p2p")
    if "collnet" in told.fields:
        communicator.num_collnet_channels = told.number("collnet")


def _communicator(gatherer: Gatherer, told: Told) -> None:
    rank, num_ranks = told.number("rank"), told.number("ranks")
    if not is_rank(rank, num_ranks):
        return
    communicator = gatherer.communicators.named(
        told.holder, told.fields["comm"], rank, num_ranks, told.place
    )
    communicator.num_nodes = told.number("nodes")
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


def version_in(text: str) -> tuple[str, ...]:
    """`2.28.9+cuda13.0` → `2.28.9`; nothing where it is none."""
    match = re.match(r"\d{1,3}\.\d{1,3}(\.\d{1,4})?", text)
    return () if match is None else (match[0],)


def _version(_: Gatherer, told: Told) -> None:
    told.process.version = next(iter(version_in(told.fields["version"])), told.process.version)


def _variable(gatherer: Gatherer, told: Told) -> None:
    name, variables = told.fields["name"], told.process.variables
    if name in variables or len(variables) < MOST_VARIABLES:
        value = told.fields["value"].strip()
        gatherer.room.put(variables, name, masked_variable(name, value.removesuffix(".")))


def _gid(gatherer: Gatherer, told: Told) -> None:
    gatherer.room.add(told.process.gid_indices, told.number("index"))


def _nic_speed(_: Gatherer, told: Told) -> None:
    gbps = float(told.fields["speed"]) * 8
    told.process.seen_gbps = min(told.process.seen_gbps or gbps, gbps)


HANDLERS: Mapping[str, Handler] = {
    "noted": lambda _gatherer, _told: None,
    "network": _network,
    "bootstrap": _bootstrap,
    "socket_interfaces": _socket_interfaces,
    "socket_threads": _socket_threads,
    "default_speed": _default_speed,
    "adapters": _adapters,
    "adapter": _adapter,
    "merged_adapter": _merged_adapter,
    "plugin_loaded": _plugin_loaded,
    "plugin_missing": _plugin_missing,
    "plugin_named": _plugin_named,
    "plugin_assigned": _plugin_assigned,
    "gdr_adapter": _gdr_adapter,
    "gdr_pair": _gdr_pair,
    "dma_buf": _dma_buf,
    "channel": _channel,
    "nvls": _nvls,
    "multicast": _multicast,
    "ring_order": _ring_order,
    "trees": _trees,
    "connected": _connected,
    "channel_counts": _channel_counts,
    "communicator": _communicator,
    "init_start": _init_start,
    "init_complete": _init_complete,
    "init_timing": _init_timing,
    "bootstrap_timing": _bootstrap_timing,
    "version": _version,
    "variable": _variable,
    "gid": _gid,
    "nic_speed": _nic_speed,
    "topology": take_topology,
    "topology_gpu": take_gpu,
    "topology_paths": take_paths,
}
"""`tells:` of a rule → what is done with its fields."""
