"""What do lines of channels, rings and trees tell: which way do bytes go from rank to rank?"""

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from broadgauge.doctor.log.communicators import UNNAMED
from broadgauge.doctor.log.facts import CommunicatorFacts, Way
from broadgauge.doctor.log.masking import kept
from broadgauge.doctor.log.room import MOST_RANKS
from broadgauge.doctor.log.topology import distance_now

if TYPE_CHECKING:
    from broadgauge.doctor.log.gathering import Gatherer, Told

_PROXY = re.compile(r"NET/.+/\d+\((?P<rank>\d+)\)")
_DEVICE = re.compile(r"(?P<device>NET/.+?/\d+)(?:\(|/|\s|$)")


def way_of(via: str) -> Way:
    """`NET/IB/0/GDRDMA` → GDRDMA."""
    if via.startswith("P2P"):
        return Way.P2P
    if via.startswith(("SHM", "direct shared memory")):
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


def take_channel(gatherer: "Gatherer", told: "Told") -> None:
    fields = told.fields
    sender, receiver = int(fields["from_rank"]), int(fields["to_rank"])
    if not 0 <= min(sender, receiver) <= max(sender, receiver) < MOST_RANKS:
        return
    pair = (sender, receiver)
    via = _parse_via(fields["via"])
    communicator = gatherer.communicator(told, max(sender, receiver))
    if communicator.identity == UNNAMED:
        teller = receiver if fields.get("direction") == "receive" else sender
        gatherer.room.put(communicator.members, teller, told.process.speaker)
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


def _first_line(communicator: CommunicatorFacts, key: tuple[Way, bool], told: "Told") -> None:
    if key not in communicator.lines:
        communicator.lines[key] = (told.place, kept(told.text))


def take_nvls(gatherer: "Gatherer", told: "Told") -> None:
    communicator = gatherer.communicator(told, 0)
    communicator.has_nvls = True
    _first_line(communicator, (Way.NVLS, False), told)


def take_ring_order(gatherer: "Gatherer", told: "Told") -> None:
    words = told.fields["ranks"].split()
    ranks = tuple(int(word) for word in words if word.isdecimal() and len(word) < 7)
    if ranks:
        communicator = gatherer.communicator(told, max(ranks))
        gatherer.room.put(communicator.rings, told.number("channel"), ranks)


def take_trees(gatherer: "Gatherer", told: "Told") -> None:
    gatherer.communicator(told, 0).has_trees = True


def take_connected(gatherer: "Gatherer", told: "Told") -> None:
    if told.fields["what"].startswith("rings"):
        communicator = gatherer.communicator(told, 0)
        communicator.has_connected = True
        gatherer.communicators.connected(told.holder, communicator)


def take_channel_counts(gatherer: "Gatherer", told: "Told") -> None:
    communicator = gatherer.communicator(told, 0)
    communicator.num_channels = told.number("coll")
    communicator.num_nvls_channels = told.number("nvls")
    communicator.num_p2p_channels = told.number("p2p")
    if "collnet" in told.fields:
        communicator.num_collnet_channels = told.number("collnet")
