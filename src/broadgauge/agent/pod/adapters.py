"""Which RDMA adapter, port and GID belong to a NIC of this pod?

All networks of a shape are attached to the same pods, which see every adapter. A macvlan in a pod
has no PCI device of its own, and its adapter is the node's, shared by all pods there: only the
adapter's table of GIDs, which has the macvlan's address, joins the two.
Source: Linux, drivers/infiniband/core/roce_gid_mgmt.c; NVIDIA/nccl (2.21 and newer),
src/transport/net_ib.cc, ncclIbGetGidIndex and ncclUpdateGidIndex.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.found_nics import FoundNic, natural
from broadgauge.agent.pod.name_lists import is_named
from broadgauge.messages.hardware import GidFacts, HcaFacts, HcaPort

VARIABLE = "NCCL_IB_HCA"
LINK_LAYERS = {"roce": "Ethernet", "infiniband": "InfiniBand"}
"""What a port says of itself, by the transport that is asked for."""
_ROCE_V2 = "RoCE v2"


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
        """RoCE v2 with one of the NIC's IPv4 addresses, with any where it has no interface; the
        first, as the table may have one for each VLAN or bond above it."""
        own = None if self.found_nic.nic is None else self.found_nic.ipv4
        rows = (
            row
            for row in self.port.gids or ()
            if row.kind == _ROCE_V2 and row.ipv4 is not None and (own is None or row.ipv4 in own)
        )
        return next(rows, None)


def find_adapter(found_nic: FoundNic, facts: PodFacts) -> NicAdapter | None:
    """None: this NIC has none that can be seen here."""
    for hca, port, how in _candidates(found_nic, facts):
        return NicAdapter(found_nic=found_nic, hca=hca, port=port, how=how)
    return None


def opened_adapters(layer: str, facts: PodFacts) -> list[NicAdapter]:
    """Active ports of a link layer that this container was given, without an interface of their
    own: a device plugin's resource gives the file that libibverbs opens, and no network."""
    how = "the container was given it, and it is active"
    return [
        NicAdapter(found_nic=FoundNic(nic=None, status=None, how=how), hca=hca, port=port, how=how)
        for hca, port in _all_ports(facts)
        if facts.verbs_files.get(hca.name) in facts.opened_files
        and port.link_layer == layer
        and port.state == "ACTIVE"
    ]


def named_adapters(value: str, own: Sequence[NicAdapter], facts: PodFacts) -> list[NicAdapter]:
    """Those that the user's list names, with the NICs of ours that they belong to."""
    of_ours = {adapter.name: adapter for adapter in own}
    how = f"{VARIABLE}={value} names it"
    found = []
    for hca, port in _all_ports(facts):
        if is_named(value, hca.name, port.number):
            alone = FoundNic(nic=None, status=None, how=how)
            new = NicAdapter(found_nic=alone, hca=hca, port=port, how=how)
            found.append(of_ours.get(new.name, new))
    return found


def adapters_here(facts: PodFacts) -> str:
    """In words."""
    here = [
        f"{hca.name}:{port.number} {port.link_layer or 'of an unknown kind'} {port.state or '?'}"
        for hca in facts.hardware.hcas
        for port in hca.ports
    ]
    return f"adapters here: {', '.join(here)}" if here else "no RDMA adapter is in this pod"


def _all_ports(facts: PodFacts) -> Iterator[tuple[HcaFacts, HcaPort]]:
    for hca in sorted(facts.hardware.hcas, key=lambda hca: natural(hca.name)):
        for port in hca.ports:
            yield hca, port


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
    for name in _below(nic.name, facts):
        how = "is" if name == nic.name else f"stands on {name},"
        for hca in facts.hardware.hcas:
            if name in hca.interfaces:
                yield from _ports(hca, found_nic, f"{nic.name} {how} its own interface")
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
