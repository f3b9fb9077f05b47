"""Which addresses does an interface get: from whereabouts, host-local, static, or none?

Allocations live in this process. `whereabouts` is unique in the cluster, `host-local` on a node.
Source of the fields: the plugins' documentation (whereabouts' extended configuration;
containernetworking/plugins: ipam/host-local, ipam/static).
"""

import ipaddress
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


class IpamError(Exception):
    """The plugin's words, as its caller prints them."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What one interface is to have: addresses with prefix, routes (destination, gateway)."""

    addresses: tuple[str, ...] = ()
    routes: tuple[tuple[str, str | None], ...] = ()


@dataclass(kw_only=True)
class AddressBook:
    """Who holds which address of which range? An owner is `UID/interface` of a pod."""

    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    """(pool, address) to owner; a pool is one range, on a node or everywhere."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def allocate(self, ipam: Json, *, owner: str, node: str, asked: Sequence[str] = ()) -> Lease:
        """Raises IpamError. `asked`: the `ips` of the pod's annotation."""
        if not ipam:
            return Lease()
        kind = ipam.get("type")
        routes = tuple((route["dst"], route.get("gw")) for route in ipam.get("routes") or ())
        if kind == "static":
            return Lease(addresses=_static(ipam, asked), routes=routes)
        if kind == "whereabouts":
            pools = [(_pool_name(ipam, ""), one) for one in _whereabouts_ranges(ipam)]
        elif kind == "host-local":
            pools = [(_pool_name(ipam, node), one) for one in _host_local_ranges(ipam)]
        else:
            raise IpamError(f'failed to find plugin "{kind}" in path [/opt/cni/bin]')
        with self.lock:
            addresses = [self._next(name, one, owner, asked) for name, one in pools]
        return Lease(addresses=tuple(addresses), routes=routes)

    def release(self, pod_uid: str) -> None:
        """Give back all that a pod's interfaces hold."""
        with self.lock:
            gone = [key for key, who in self.taken.items() if who.startswith(f"{pod_uid}/")]
            for key in gone:
                del self.taken[key]

    def _next(self, pool: str, one: "AddressRange", owner: str, asked: Sequence[str]) -> str:
        wanted = {text.partition("/")[0] for text in asked}
        for address in one.addresses():
            if wanted and str(address) not in wanted:
                continue
            key = (pool, str(address))
            if key not in self.taken:
                self.taken[key] = owner
                return f"{address}/{one.network.prefixlen}"
        raise IpamError(one.exhausted)


@dataclass(frozen=True, kw_only=True)
class AddressRange:
    """Addresses of one network that may be given."""

    network: ipaddress.IPv4Network
    start: ipaddress.IPv4Address
    end: ipaddress.IPv4Address
    excluded: tuple[ipaddress.IPv4Network, ...] = ()
    exhausted: str = ""

    def addresses(self) -> Iterator[ipaddress.IPv4Address]:
        for number in range(int(self.start), int(self.end) + 1):
            address = ipaddress.IPv4Address(number)
            if not any(address in network for network in self.excluded):
                yield address


def _pool_name(ipam: Json, node: str) -> str:
    ranges = ipam.get("ipRanges") or ipam.get("ranges") or ipam.get("range") or ipam.get("subnet")
    return f"{ipam['type']} {node} {ipam.get('network_name', '')} {ranges}"


def _static(ipam: Json, asked: Sequence[str]) -> tuple[str, ...]:
    """The annotation's `ips` take the place of the configuration's addresses."""
    texts = list(asked) or [entry["address"] for entry in ipam.get("addresses") or ()]
    for text in texts:
        try:
            ipaddress.ip_interface(text)
        except ValueError:
            raise IpamError(
                f"the 'address' field is expected to be in CIDR notation, got: '{text}'"
            ) from None
        if "/" not in text:
            raise IpamError(
                f"the 'address' field is expected to be in CIDR notation, got: '{text}'"
            )
    return tuple(texts)


_SPAN = re.compile(r"([0-9.]+)-([0-9.]+/[0-9]+)")


def _whereabouts_ranges(ipam: Json) -> list[AddressRange]:
    """`range` or `ipRanges`; "192.168.2.225/28" or "192.168.2.10-192.168.2.20/24"."""
    entries = ipam.get("ipRanges") or [ipam]
    found = []
    for entry in entries:
        if "range" not in entry:
            raise IpamError("error at storage engine: no range was given")
        text = entry["range"]
        start, end = entry.get("range_start"), entry.get("range_end")
        if span := _SPAN.fullmatch(text):
            start, text = span[1], span[2]
            end = end or text.partition("/")[0]
        network = _network(text)
        found.append(
            AddressRange(
                network=network,
                start=_address(start) if start else network.network_address + 1,
                end=_address(end) if end else network.broadcast_address - 1,
                excluded=tuple(_network(one) for one in entry.get("exclude") or ()),
                exhausted="error at storage engine: Could not allocate IP in range: "
                f"ip: {start or network.network_address + 1} / "
                f"- {end or network.broadcast_address - 1} / range: {network} / "
                f"excludeRanges: [{' '.join(entry.get('exclude') or ())}]",
            )
        )
    return found


def _host_local_ranges(ipam: Json) -> list[AddressRange]:
    """`ranges` is a list of sets, one address of each; or the older `subnet` at the top."""
    sets = ipam.get("ranges") or [[ipam]]
    found = []
    for number, entries in enumerate(sets):
        entry = entries[0]
        network = _network(entry.get("subnet", ""))
        start, end = entry.get("rangeStart"), entry.get("rangeEnd")
        gateway = entry.get("gateway") or str(network.network_address + 1)
        first, last = (
            _address(start or gateway),
            _address(end or str(network.broadcast_address - 1)),
        )
        found.append(
            AddressRange(
                network=network,
                start=first,
                end=last,
                excluded=(_network(f"{gateway}/32"),),
                exhausted=f"failed to allocate for range {number}: no IP addresses available in "
                f"range set: {first}-{last}",
            )
        )
    return found


def _network(text: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise IpamError(f"invalid CIDR address: {text}") from None


def _address(text: str) -> ipaddress.IPv4Address:
    try:
        return ipaddress.IPv4Address(text)
    except ValueError:
        raise IpamError(f"invalid IP address: {text}") from None
