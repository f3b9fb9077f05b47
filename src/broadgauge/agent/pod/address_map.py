"""Which addresses and routes does the published address map give a node's interfaces?

The file has a line `host:device:interface:ip` for each NIC of each node:
`worker-2:ens13:net1:10.249.65.9`. It is for networks that accept from a node only the address
given to it, as a cloud's virtual NICs. Source: "Network performance in distributed training:
Maximizing GPU utilization on OpenShift" (October 2025), "IP address mapping file" and "vNIC IP
address remapping": each interface gets its node's address as a /24, and a route of metric 150 to
each other node's address on the interface of that name, by its own address: Linux takes that for a
route without a gateway.

Beyond the article: the address may have a prefix length, `10.249.65.9/26`; a fifth column is the
gateway to addresses outside of it, for networks whose subnets a router joins; `#` begins a comment.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.wording.near_words import did_you_mean

PREFIX_LENGTH = 24
METRIC = 150
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
"""A node's name: RFC 1123's subdomain, in either case."""
_INTERFACE = re.compile(r"(?!\.{1,2}\Z)(?:(?![\"$',/:=\\`])[!-~]){1,15}")
"""Source: Linux, net/core/dev.c, dev_valid_name; of these, printable ASCII without what makes a
list of NCCL_SOCKET_IFNAME, or another word of a shell's."""
_OWN = ("eth0", "lo")
"""Every pod has these: the cluster's network and the loopback. Source: Kubernetes, container
runtimes name the interface of the pod network eth0 (containerd, CRI-O, Multus' quick start)."""
_OBJECT = re.compile(r"(apiVersion|kind|metadata|data|nodename_ip_mapping\.yaml) *:")
"""How a line begins that is of the ConfigMap around the map, as the article prints it."""
_NETMASK = re.compile(r"[0-9]{1,2}")
FEWEST_PREFIX_BITS = 8
"""No larger block of IPv4 is given to anyone. Source: IANA, IPv4 Address Space Registry."""
_POINT_TO_POINT_BITS = 31
"""From this length on a subnet has neither network nor broadcast address. Source: RFC 3021."""
_NO_HOSTS = (
    (ipaddress.IPv4Network("0.0.0.0/8"), "0/8 is no host's"),
    (ipaddress.IPv4Network("127.0.0.0/8"), "127/8 is the loopback's"),
    (ipaddress.IPv4Network("224.0.0.0/4"), "it is of multicast"),
    (ipaddress.IPv4Network("240.0.0.0/4"), "240/4 is reserved"),
)
_FORM = "host:device:interface:ip, such as worker-2:ens13:net1:10.249.65.9"
MOST_LINES = 65_536
_SHOWN_CHARACTERS = 60


class AddressMapError(ValueError):
    """The map, or what it asks of this pod, can't be used."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedNic:
    """One line."""

    line: int
    host: str
    device: str
    """On the node, before it was given to a pod: `ens13`. For people."""
    interface: str
    """In the pod: `net1`."""
    address: ipaddress.IPv4Interface
    gateway: ipaddress.IPv4Address | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """To one address of another node."""

    to: ipaddress.IPv4Address
    gateway: ipaddress.IPv4Address | None
    """None: it is on the link, as the article has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfacePlan:
    """What an interface of this pod is to have: this address of IPv4 and no other."""

    interface: str
    address: ipaddress.IPv4Interface
    routes: tuple[Route, ...]


def parse_map(text: str, name: str = "nodename_ip_mapping.yaml") -> tuple[MappedNic, ...]:
    """Every line, in order. Raises AddressMapError with the line's number."""
    lines = text.removeprefix("\ufeff").split("\n")
    if len(lines) > MOST_LINES:
        raise AddressMapError(f"{name}: {len(lines)} lines, at most {MOST_LINES} are read")
    found = []
    for number, line in enumerate(lines, start=1):
        content = line.removesuffix("\r").partition("#")[0]
        _refuse_odd_characters(content, f"{name}:{number}")
        if content.strip():
            found.append(_parse_line(content.strip(), number, name))
    if not found:
        raise AddressMapError(f"{name}: no line in it", f"a line for each NIC: {_FORM}")
    _refuse_doubles(found, name)
    return tuple(found)


def _refuse_odd_characters(content: str, place: str) -> None:
    """Some look like a space, and neither the article's script nor a reader tells them apart."""
    for position, character in enumerate(content, start=1):
        if not " " <= character <= "~":
            what = "a tab" if character == "\t" else f"U+{ord(character):04X}"
            raise AddressMapError(
                f"{place}: {what} as character {position}",
                f"printable ASCII before a `#`, and no tabs: {_FORM}",
            )


def _parse_line(content: str, number: int, name: str) -> MappedNic:
    place = f"{name}:{number}"
    cells = [cell.strip() for cell in content.split(":")]
    if len(cells) not in (4, 5):
        columns = f"{len(cells)} columns" if len(cells) > 1 else "1 column"
        raise AddressMapError(f"{place}: {_shown(content)} has {columns}", _form(content, cells))
    host, device, interface, address, *rest = cells
    if not _HOST.fullmatch(host):
        raise AddressMapError(f"{place}: {_shown(host)} is no node's name", _FORM)
    for column, value in (("device", device), ("interface", interface)):
        if not _INTERFACE.fullmatch(value):
            raise AddressMapError(f"{place}: {_shown(value)} is no {column}'s name", _FORM)
    if interface in _OWN:
        raise AddressMapError(
            f"{place}: {interface} is the pod's own, and keeps its address",
            "the interface that the attachment gets in the pod, such as net1",
        )
    own = _own_address(address, place)
    gateway = _gateway(rest[0], own, place) if rest else None
    return MappedNic(
        line=number, host=host, device=device, interface=interface, address=own, gateway=gateway
    )


def _form(content: str, cells: Sequence[str]) -> str:
    if _OBJECT.match(content):
        return f"only what the ConfigMap holds, without the object around it: {_FORM}"
    return _FORM if len(cells) < 6 else f"{_FORM}; addresses are of IPv4"


def _own_address(text: str, place: str) -> ipaddress.IPv4Interface:
    """Raises AddressMapError."""
    ip, slash, bits = text.partition("/")
    try:
        if slash and not _NETMASK.fullmatch(bits):
            raise ValueError(f"{bits} is no prefix length")
        own = ipaddress.IPv4Interface((_ip(ip), int(bits) if slash else PREFIX_LENGTH))
    except ValueError as error:
        raise _no_address(text, error, place) from error
    if own.network.prefixlen < FEWEST_PREFIX_BITS:
        raise AddressMapError(
            f"{place}: {_shown(text)}: a subnet has a prefix of {FEWEST_PREFIX_BITS} bits or more",
            "that of the network's own subnet: 10.249.65.9/24",
        )
    why = _why_not(own.ip, own.network)
    if why is not None:
        raise AddressMapError(
            f"{place}: {_shown(text)} is no address that an interface can have: {why}",
            "the address that the network gave to this node's NIC",
        )
    return own


def _gateway(text: str, own: ipaddress.IPv4Interface, place: str) -> ipaddress.IPv4Address:
    """Raises AddressMapError."""
    try:
        gateway = _ip(text)
    except ValueError as error:
        raise _no_address(text, error, place) from error
    if gateway not in own.network:
        raise AddressMapError(
            f"{place}: the gateway {gateway} is not in {own.network}",
            "say the address's prefix length: 10.249.65.9/20",
        )
    why = "the NIC's own" if gateway == own.ip else _why_not(gateway, own.network)
    if why is not None:
        raise AddressMapError(
            f"{place}: the gateway can't be {gateway}: {why}", "the router's address in the subnet"
        )
    return gateway


def _no_address(text: str, error: ValueError, place: str) -> AddressMapError:
    why = _cut(str(error))
    return AddressMapError(f"{place}: {_shown(text)} is no address of IPv4: {why}", _FORM)


def _ip(text: str) -> ipaddress.IPv4Address:
    """Raises ValueError."""
    return ipaddress.IPv4Address(text)


def _why_not(ip: ipaddress.IPv4Address, network: ipaddress.IPv4Network) -> str | None:
    """What it is instead of one host's address; None: it is one.

    Source: RFC 1112 (multicast), RFC 1122, 3.2.1.3 (0/8, 127/8, 240/4; a subnet's first and last).
    """
    for block, what in _NO_HOSTS:
        if ip in block:
            return what
    if network.prefixlen < _POINT_TO_POINT_BITS:
        if ip == network.network_address:
            return f"it is the address of the subnet {network}"
        if ip == network.broadcast_address:
            return f"it is the broadcast address of {network}"
    return None


def _refuse_doubles(rows: Sequence[MappedNic], name: str) -> None:
    addresses: dict[ipaddress.IPv4Address, int] = {}
    interfaces: dict[tuple[str, str], int] = {}
    for row in rows:
        first = addresses.setdefault(row.address.ip, row.line)
        if first != row.line:
            raise AddressMapError(
                f"{name}:{row.line}: {row.address.ip} is given twice, in line {first} too",
                "each NIC of each node has an address of its own",
            )
        first = interfaces.setdefault((row.host, row.interface), row.line)
        if first != row.line:
            raise AddressMapError(
                f"{name}:{row.line}: {row.interface} of {row.host} stands in line {first} too",
                "an interface has one address; a node's other NICs are net2, net3, …",
            )


def plan_for(
    rows: Sequence[MappedNic], node: str, interfaces: Sequence[str] = ()
) -> tuple[InterfacePlan, ...]:
    """What follows for this node, by the map's order.

    `interfaces`: those that this pod has of the map's; empty: all of the node's. Raises
    AddressMapError where the map does not know the node or one of them.
    """
    own = [row for row in rows if row.host == node]
    if not own:
        hosts = {row.host for row in rows}
        near = did_you_mean(node, hosts) or f"it has {len(hosts)} other nodes"
        raise AddressMapError(
            f"node {_shown(node)} is not in the address map",
            f"name each node that pods may come to as `kubectl get nodes` does; {near}",
        )
    unknown = sorted(set(interfaces) - {row.interface for row in own})
    if unknown:
        known = ", ".join(row.interface for row in own)
        raise AddressMapError(
            f"the address map has no line for {', '.join(unknown)} of node {node}",
            f"it has {known}",
        )
    wanted = [row for row in own if not interfaces or row.interface in interfaces]
    return tuple(
        InterfacePlan(
            interface=row.interface, address=row.address, routes=tuple(_routes(row, rows))
        )
        for row in wanted
    )


def _routes(own: MappedNic, rows: Sequence[MappedNic]) -> Iterator[Route]:
    for row in rows:
        if row.host == own.host or row.interface != own.interface:
            continue
        is_beside = row.address.ip in own.address.network
        yield Route(to=row.address.ip, gateway=None if is_beside else own.gateway)


def _shown(text: str) -> str:
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
