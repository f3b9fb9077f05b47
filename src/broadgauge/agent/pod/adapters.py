"""Which RDMA adapter, port and GID belong to a NIC of this pod?

A macvlan in a pod has no PCI device of its own, and its adapter is the host's, shared by all pods
of the node: only the adapter's table of GIDs, which has the macvlan's address, joins the two.
Source: Linux, drivers/infiniband/core/roce_gid_mgmt.c; NVIDIA/nccl (2.21 and newer),
src/transport/net_ib.cc, ncclIbGetGidIndex and ncclUpdateGidIndex.
"""

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.found_nics import FoundNic, natural
from broadgauge.messages.hardware import GidFacts, HcaFacts, HcaPort

ROCE_V1, ROCE_V2 = "IB/RoCE v1", "RoCE v2"
_LINK_LOCAL = "fe80:0000:0000:0000:"


@dataclass(frozen=True, slots=True, kw_only=True)
class NicAdapter:
    """A NIC's adapter."""

    found_nic: FoundNic
    hca: HcaFacts
    port: HcaPort
    how: str
    """By what the two were joined, in words."""

    @property
    def name(self) -> str:
        """As NCCL names a port: `mlx5_0:1`."""
        return f"{self.hca.name}:{self.port.number}"

    @property
    def is_roce(self) -> bool:
        return self.port.link_layer == "Ethernet"

    @property
    def gid(self) -> GidFacts | None:
        """RoCE v2 with one of the NIC's IPv4 addresses; the first, as the table may have one for
        each VLAN or bond above it."""
        own = self.found_nic.ipv4
        rows = (row for row in self.port.gids or () if row.kind == ROCE_V2 and row.ipv4 in own)
        return next(rows, None)


def find_adapter(found_nic: FoundNic, facts: PodFacts) -> NicAdapter | None:
    """None: this NIC has none that can be seen here."""
    for hca, port, how in _candidates(found_nic, facts):
        return NicAdapter(found_nic=found_nic, hca=hca, port=port, how=how)
    return None


def opened_adapters(layer: str, facts: PodFacts) -> list[NicAdapter]:
    """Active ports of a link layer that this container was given, without an interface of their
    own: a device plugin's resource gives the file that libibverbs opens, and no network."""
    rdma = facts.hardware.rdma
    opened = set(rdma.device_files) - set(rdma.refused_files)
    how = "the container was given it, and it is active"
    return [
        NicAdapter(found_nic=FoundNic(nic=None, status=None, how=how), hca=hca, port=port, how=how)
        for hca in sorted(facts.hardware.hcas, key=lambda hca: natural(hca.name))
        if facts.verbs_files.get(hca.name) in opened
        for port in hca.ports
        if port.link_layer == layer and port.state == "ACTIVE"
    ]


def _candidates(found_nic: FoundNic, facts: PodFacts) -> Iterator[tuple[HcaFacts, HcaPort, str]]:
    """The surest first."""
    nic, status = found_nic.nic, found_nic.status
    for address in found_nic.ipv4:
        rows = [(h, p) for h, p, row in _gids(facts) if row.ipv4 == address]
        own = [(h, p) for h, p in rows if nic is not None and nic.name in h.interfaces]
        for hca, port in own or rows:
            yield hca, port, f"its GID table has {address}"
    if status is not None and status.rdma_device is not None:
        named = facts.hca(status.rdma_device)
        if named is not None:
            yield from _ports(named, found_nic, f"{status.name}'s status names it")
    addresses = [None if nic is None or nic.pci is None else nic.pci.address]
    addresses.append(None if status is None else status.pci_address)
    for hca in facts.hardware.hcas:
        if hca.pci is not None and hca.pci.address in addresses:
            yield from _ports(hca, found_nic, f"both are PCI device {hca.pci.address}")
    if nic is None:
        return
    for hca in facts.hardware.hcas:
        below = [name for name in _below(nic.name, facts) if name in hca.interfaces]
        for name in below:
            yield from _ports(hca, found_nic, f"{nic.name} stands on its interface {name}")
    by_name = {
        (hca.name, port.number): (hca, port)
        for hca, port, row in _gids(facts)
        if row.interface == nic.name
    }
    if len(by_name) == 1:
        ((hca, port),) = by_name.values()
        yield hca, port, f"its GID table names {nic.name}"


def _gids(facts: PodFacts) -> Iterator[tuple[HcaFacts, HcaPort, GidFacts]]:
    for hca in facts.hardware.hcas:
        for port in hca.ports:
            for row in port.gids or ():
                yield hca, port, row


def _ports(hca: HcaFacts, found_nic: FoundNic, how: str) -> Iterator[tuple[HcaFacts, HcaPort, str]]:
    """Of an adapter with several ports the one whose table names the interface, else the first
    that is active."""

    def is_less_sure(port: HcaPort) -> tuple[bool, bool]:
        names = {row.interface for row in port.gids or ()}
        return found_nic.nic is None or found_nic.nic.name not in names, port.state != "ACTIVE"

    for port in sorted(hca.ports, key=is_less_sure):
        yield hca, port, how


def _below(name: str, facts: PodFacts) -> list[str]:
    """What an interface stands on, itself first; in this network namespace."""
    found = [name]
    for each in found:
        links = facts.links.get(each)
        found += [lower for lower in (links.lower if links else ()) if lower not in found]
    return found


def common_gid_index(adapters: Sequence[NicAdapter]) -> int | None:
    """Of all RoCE adapters; None: they differ, or one has none. NCCL takes one index for all."""
    found = {None if one.gid is None else one.gid.index for one in adapters if one.is_roce}
    return found.pop() if len(found) == 1 else None


def index_that_nccl_takes(port: HcaPort, address_range: str | None = None) -> int:
    """Which GID does NCCL 2.21 or newer take of a RoCE port, no index being set?

    The first of all; from there on each of IPv4 where the one so far is not, then each of RoCE v2
    where the one so far is not. `address_range`: NCCL_IB_ADDR_RANGE, `10.0.0.0/16`.
    """
    rows = {row.index: row for row in port.gids or ()}
    within = None if address_range is None else ipaddress.IPv4Network(address_range)
    taken = 0
    for index in sorted(rows):
        row, so_far = rows[index], rows.get(taken)
        if index == 0 or row.ipv4 is None:
            continue
        if within is not None and ipaddress.IPv4Address(row.ipv4) not in within:
            continue
        is_first = so_far is None or so_far.ipv4 is None
        if is_first or (row.kind == ROCE_V2 and rows[taken].kind != ROCE_V2):
            taken = index
    return taken


def does_nccl_find_them(adapters: Sequence[NicAdapter], address_range: str | None = None) -> bool:
    """Does it take the right GID of each RoCE port, no index being set?"""
    return all(
        one.gid is not None and index_that_nccl_takes(one.port, address_range) == one.gid.index
        for one in adapters
        if one.is_roce
    )


def tightest_range(adapters: Sequence[NicAdapter]) -> str | None:
    """The smallest subnet that holds the address of each one's GID; None: one has no GID."""
    own = [None if one.gid is None else one.gid.ipv4 for one in adapters if one.is_roce]
    if not own or None in own:
        return None
    numbers = [int(ipaddress.IPv4Address(address)) for address in own if address is not None]
    length = 32
    while len({number >> (32 - length) for number in numbers}) > 1:
        length -= 1
    return str(ipaddress.IPv4Network((numbers[0], length), strict=False))
