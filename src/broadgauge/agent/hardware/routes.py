"""Which addresses and subnets has an interface, and which has the default route?

Source: Linux, proc_net(5): /proc/net/route (numbers in the byte order of the machine, in
hexadecimal), /proc/net/fib_trie (the host's own addresses are `/32 host LOCAL`), if_inet6.
"""

import ipaddress
import socket
import sys
from dataclasses import dataclass, field

from broadgauge.agent.addresses import address_of, netmask_of
from broadgauge.agent.hardware.tree import Tree

_COLUMNS = 8
_LINK_LOCAL = 0x20
"""Source: Linux, include/net/ipv6.h, IPV6_ADDR_LINKLOCAL: a scope of if_inet6."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Of one network namespace, by interface."""

    subnets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    addresses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    default: str | None = None
    """Of the smallest metric."""


def read_routes(tree: Tree) -> Routes:
    """What of it can be read."""
    subnets: dict[str, list[ipaddress.IPv4Network]] = {}
    defaults: list[tuple[int, str]] = []
    for line in tree.lines("/proc/net/route")[1:]:
        cells = line.split()
        network = _network(cells)
        if network is None:
            continue
        if network.prefixlen == 0:
            defaults.append((int(cells[6]) if cells[6].isdecimal() else 0, cells[0]))
        elif cells[2] == "00000000" and network.prefixlen < 32:
            subnets.setdefault(cells[0], []).append(network)
    return Routes(
        subnets={name: tuple(map(str, networks)) for name, networks in subnets.items()},
        addresses=_addresses(tree, subnets),
        default=min(defaults)[1] if defaults else None,
    )


def _network(cells: list[str]) -> ipaddress.IPv4Network | None:
    if len(cells) < _COLUMNS:
        return None
    try:
        to, mask = (bytes.fromhex(cells[at]) for at in (1, 7))
        if sys.byteorder == "little":
            to, mask = to[::-1], mask[::-1]
        return ipaddress.IPv4Network((socket.inet_ntoa(to), socket.inet_ntoa(mask)), strict=False)
    except (ValueError, OSError):
        return None


def _addresses(
    tree: Tree, subnets: dict[str, list[ipaddress.IPv4Network]]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    if tree.is_live:
        for _, name in socket.if_nameindex():
            own, mask = address_of(name), netmask_of(name)
            if own is not None and mask is not None:
                length = ipaddress.IPv4Network((0, mask)).prefixlen
                found.setdefault(name, []).append(f"{own}/{length}")
    else:
        for address in _own_addresses(tree):
            homes = [(n, net) for n, nets in subnets.items() for net in nets if address in net]
            if len(homes) == 1:
                name, network = homes[0]
                found.setdefault(name, []).append(f"{address}/{network.prefixlen}")
    for name, text in _ipv6_addresses(tree):
        found.setdefault(name, []).append(text)
    return {name: tuple(texts) for name, texts in found.items()}


def _own_addresses(tree: Tree) -> list[ipaddress.IPv4Address]:
    """By fib_trie, which does not say whose they are."""
    found: dict[ipaddress.IPv4Address, None] = {}
    before = ""
    for line in tree.lines("/proc/net/fib_trie"):
        if "/32 host LOCAL" in line and before.startswith("|-- "):
            try:
                found[ipaddress.IPv4Address(before.removeprefix("|-- ").strip())] = None
            except ValueError:
                continue
        before = line.strip()
    return list(found)


def _ipv6_addresses(tree: Tree) -> list[tuple[str, str]]:
    """Link-local ones are left out: every interface has one."""
    found: list[tuple[str, str]] = []
    for line in tree.lines("/proc/net/if_inet6"):
        cells = line.split()
        try:
            digits, _, length, scope, _, name = cells
            if int(scope, 16) == _LINK_LOCAL:
                continue
            address = ipaddress.IPv6Address(bytes.fromhex(digits))
            found.append((name, f"{address}/{int(length, 16)}"))
        except ValueError:
            continue
    return found
