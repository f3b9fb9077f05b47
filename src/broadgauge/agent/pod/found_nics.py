"""Which interfaces of this pod are a network's? By Multus' status or by address, never by name."""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.status import NetworkStatus
from broadgauge.messages.hardware import NicFacts
from broadgauge.messages.pod_network import PodNetwork

_DIGITS = re.compile(r"(\d+)")
NO_STATUS = (
    "the pod has no network status annotation that can be read, and the network names no subnet: "
    "mount `metadata.annotations` by the downward API, or say the attachment's subnet"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNic:
    """One NIC of a network, as it was found."""

    nic: NicFacts | None
    """None: the attachment has a device and no interface, as some of RDMA."""
    status: NetworkStatus | None
    """None: it was found by address or by route."""
    how: str
    """In words, for people."""

    @property
    def ipv4(self) -> tuple[str, ...]:
        """Its addresses, without prefix."""
        return () if self.nic is None else ipv4_of(self.nic)


class NoSuchNicError(LookupError):
    """A NIC of the network is not in this pod, or can't be told from another."""


def ipv4_of(nic: NicFacts) -> tuple[str, ...]:
    """Without prefix."""
    texts = (address.partition("/")[0] for address in nic.addresses)
    return tuple(text for text in texts if ":" not in text)


def find_nics(network: PodNetwork, facts: PodFacts) -> tuple[FoundNic, ...]:
    """One for each NIC, in the order of the attachments; of the pod network its one interface.

    Raises NoSuchNicError.
    """
    if network.is_pod_network and not network.subnets:
        return (pod_network_nic(facts),)
    if network.is_pod_network:
        return tuple(_by_subnets(network, facts))
    entries = _entries_of(network, facts)
    if entries is None:
        if not network.subnets:
            raise NoSuchNicError(facts.status_problem or NO_STATUS)
        return tuple(_by_subnets(network, facts))
    return tuple(_by_status(entry, facts) for entry in entries)


def pod_network_nic(facts: PodFacts) -> FoundNic:
    """The network that every pod has. Raises NoSuchNicError."""
    for entry in facts.status or ():
        nic = facts.nic(entry.interface or "")
        if entry.is_default and nic is not None:
            how = f"`{entry.name}` is the pod's default network by its status"
            return FoundNic(nic=nic, status=entry, how=how)
    routed = [nic for nic in facts.hardware.nics if nic.has_default_route]
    if not routed:
        raise NoSuchNicError("the pod has no default route, and no status names its own network")
    return FoundNic(nic=routed[0], status=None, how="it has the pod's default route")


def _entries_of(network: PodNetwork, facts: PodFacts) -> list[NetworkStatus] | None:
    """Of the first `num_nics` attachments; None: there is no status. The same attachment may be
    asked for twice: its entries are taken in turn."""
    if facts.status is None:
        return None
    wanted = network.attachments[: max(1, network.num_nics)]
    if len(wanted) < network.num_nics:
        raise NoSuchNicError(
            f"{network.num_nics} NICs are asked for, and {len(wanted)} attachments are named"
        )
    left = [entry for entry in facts.status if not entry.is_default]
    found: list[NetworkStatus] = []
    for attachment in wanted:
        entry = next((each for each in left if _is_of(each, attachment)), None)
        if entry is None:
            there = ", ".join(each.name for each in facts.status) or "none"
            raise NoSuchNicError(
                f"attachment {attachment} is not among the pod's networks: {there}"
            )
        left.remove(entry)
        found.append(entry)
    return found


def _is_of(entry: NetworkStatus, attachment: str) -> bool:
    """An order without a namespace means the pod's own; older versions of Multus leave it out."""
    if "/" in entry.name and "/" in attachment:
        return entry.name == attachment
    return entry.name.rpartition("/")[2] == attachment.rpartition("/")[2]


def _by_status(entry: NetworkStatus, facts: PodFacts) -> FoundNic:
    if entry.interface is None:
        if entry.rdma_device is None and entry.pci_address is None:
            raise NoSuchNicError(f"the status of {entry.name} names neither interface nor device")
        return FoundNic(nic=None, status=entry, how=f"a device of {entry.name} by its status")
    nic = facts.nic(entry.interface)
    if nic is None:
        here = ", ".join(each.name for each in facts.hardware.nics) or "none"
        raise NoSuchNicError(
            f"the status of {entry.name} names {entry.interface}, which is not in this pod: {here}"
        )
    return FoundNic(nic=nic, status=entry, how=f"the status of {entry.name} names it")


def _by_subnets(network: PodNetwork, facts: PodFacts) -> Iterator[FoundNic]:
    """One subnet for all NICs, or one for each."""
    subnets, number = network.subnets, max(1, network.num_nics)
    if len(set(subnets)) == 1:
        found = _in_subnet(subnets[0], facts)
        if len(found) != number:
            raise NoSuchNicError(_wrong_number(subnets[0], found, number))
        yield from (_placed(nic, subnets[0]) for nic in found)
        return
    if len(subnets) < number:
        raise NoSuchNicError(f"{number} NICs are asked for, and {len(subnets)} subnets are named")
    subnet_of: dict[str, str] = {}
    for subnet in subnets[:number]:
        found = _in_subnet(subnet, facts)
        if len(found) != 1:
            raise NoSuchNicError(_wrong_number(subnet, found, 1))
        other = subnet_of.setdefault(found[0].name, subnet)
        if other != subnet:
            raise NoSuchNicError(f"{found[0].name} has addresses in both {other} and {subnet}")
        yield _placed(found[0], subnet)


def _placed(nic: NicFacts, subnet: str) -> FoundNic:
    return FoundNic(nic=nic, status=None, how=f"its address is in {subnet}")


def _in_subnet(subnet: str, facts: PodFacts) -> list[NicFacts]:
    try:
        network = ipaddress.ip_network(subnet, strict=False)
    except ValueError as error:
        raise NoSuchNicError(f"no subnet: {error}") from error
    found = [nic for nic in facts.hardware.nics if any(_is_in(a, network) for a in nic.addresses)]
    return sorted(found, key=lambda nic: natural(nic.name))


def _is_in(address: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return ipaddress.ip_interface(address).ip in network


def _wrong_number(subnet: str, found: Sequence[NicFacts], number: int) -> str:
    names = ", ".join(nic.name for nic in found) or "none"
    asked = "1 is" if number == 1 else f"{number} are"
    return f"{asked} asked for of the interfaces with an address in {subnet}, here: {names}"


def natural(name: str) -> list[tuple[int, int, str]]:
    """`net2` before `net10`."""
    parts = _DIGITS.split(name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
