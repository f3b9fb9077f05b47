"""Which interfaces of this pod are a network's? By Multus' status or by address, never by a name
that is only likely."""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broadgauge.agent.pod.facts import ANNOTATIONS_FILE, PodFacts
from broadgauge.agent.pod.name_lists import is_named
from broadgauge.agent.pod.status import NetworkStatus
from broadgauge.messages.asked_network import AskedAttachment, AskedNetwork
from broadgauge.messages.hardware import NicFacts

_SOCKETS_BY = "_SOCKET_IFNAME"
SOCKETS_BY = f"NCCL{_SOCKETS_BY}"
_DIGITS = re.compile(r"(\d+)")
NO_STATUS = (
    "the pod has no network status annotation that can be read, and the network names no subnet. "
    f"Multus writes it, and the downward API shows it in {ANNOTATIONS_FILE}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNic:
    """One NIC of a network, as it was found."""

    nic: NicFacts | None
    """None: the attachment has a device and no interface, as some of RDMA."""
    status: NetworkStatus | None
    """None: it was found otherwise."""
    how: str
    """In words, for people."""

    @property
    def ipv4(self) -> tuple[str, ...]:
        """Its addresses, without prefix."""
        return () if self.nic is None else ipv4_of(self.nic)

    @property
    def words(self) -> str:
        """Which it is, and why."""
        return self.how if self.nic is None else f"{self.nic.name}: {self.how}"


class NoSuchNicError(LookupError):
    """A NIC of the network is not in this pod, or can't be told from another."""


def ipv4_of(nic: NicFacts) -> tuple[str, ...]:
    """Without prefix."""
    texts = (address.partition("/")[0] for address in nic.addresses)
    return tuple(text for text in texts if ":" not in text)


def find_nics(network: AskedNetwork, facts: PodFacts) -> tuple[FoundNic, ...]:
    """One for each NIC, in the order of the attachments; of the pod network its one interface.

    Where they can't be told, those that the user names, be it with the loopback, which is none.
    Raises NoSuchNicError.
    """
    try:
        found = _asked_for(network, facts)
        _check_distinct(found)
        return found
    except NoSuchNicError:
        given = [facts.given.get(f"{each.upper()}{_SOCKETS_BY}") for each in network.libraries]
        if None in given:
            raise
        names = facts.given.get(SOCKETS_BY) or f"={given[0]}"
        nics = [nic for nic in facts.hardware.nics if is_named(names, nic.name)]
        how = "it was named by the experiment or the image"
        return tuple(FoundNic(nic=nic, status=None, how=how) for nic in sorted_nics(nics))


def _check_distinct(found: Sequence[FoundNic]) -> None:
    """Raises NoSuchNicError."""
    names = [each.nic.name for each in found if each.nic is not None]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise NoSuchNicError(f"several attachments are one interface, {', '.join(doubled)}")


def _asked_for(network: AskedNetwork, facts: PodFacts) -> tuple[FoundNic, ...]:
    if network.is_pod_network:
        return (pod_network_nic(facts),)
    if all(each.is_name_sure for each in network.attachments):
        return tuple(_by_name(each, facts) for each in network.attachments)
    try:
        return tuple(_by_status(each, facts) for each in _entries_of(network, facts))
    except NoSuchNicError:
        if not all(each.subnets for each in network.attachments):
            raise
    return _by_subnets(network.attachments, facts)


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


def _by_name(attachment: AskedAttachment, facts: PodFacts) -> FoundNic:
    """Of whoever attaches it under the name that it was asked for."""
    nic = facts.nic(attachment.interface)
    if nic is None:
        raise NoSuchNicError(
            f"{attachment.definition} is {attachment.interface}, which is not in this pod: "
            f"{_here(facts)}"
        )
    return FoundNic(
        nic=nic, status=None, how=f"{attachment.definition} is attached under this name"
    )


def _entries_of(network: AskedNetwork, facts: PodFacts) -> list[NetworkStatus]:
    """Of each attachment. The same may be asked for twice, and one attachment may have several
    interfaces: the entry of the interface that was asked for is taken, else the first that is not
    asked for by another."""
    if facts.status is None:
        raise NoSuchNicError(facts.status_problem or NO_STATUS)
    left = [entry for entry in facts.status if not entry.is_default]
    found: list[NetworkStatus] = []
    others = {each.interface for each in network.attachments}
    for attachment in network.attachments:
        own = [each for each in left if _is_of(each, attachment.definition)]
        if not own:
            there = ", ".join(each.name for each in facts.status) or "none"
            unread = f"; not readable: {facts.status_problem}" if facts.status_problem else ""
            raise NoSuchNicError(
                f"{attachment.definition} is not among the networks of the pod's status: {there}"
                f"{unread}"
            )
        asked = attachment.interface
        entry = min(own, key=lambda each: (each.interface != asked, each.interface in others))
        left.remove(entry)
        found.append(entry)
    return found


def _is_of(entry: NetworkStatus, definition: str) -> bool:
    """An order without a namespace means the pod's own; older versions of Multus leave it out."""
    if "/" in entry.name and "/" in definition:
        return entry.name == definition
    return entry.name.rpartition("/")[2] == definition.rpartition("/")[2]


def _by_status(entry: NetworkStatus, facts: PodFacts) -> FoundNic:
    if entry.interface is None:
        if entry.rdma_device is None and entry.pci_address is None:
            raise NoSuchNicError(f"the status of {entry.name} names neither interface nor device")
        return FoundNic(nic=None, status=entry, how=f"a device of {entry.name} by its status")
    nic = facts.nic(entry.interface)
    if nic is None:
        raise NoSuchNicError(
            f"the status of {entry.name} names {entry.interface}, which is not in this pod: "
            f"{_here(facts)}"
        )
    return FoundNic(nic=nic, status=entry, how=f"the status of {entry.name} names it")


def _by_subnets(attachments: Sequence[AskedAttachment], facts: PodFacts) -> tuple[FoundNic, ...]:
    """Attachments of the same subnets get their NICs in the order of their names."""
    found: list[FoundNic] = []
    for place, attachment in enumerate(attachments):
        taken = [each.nic for each in found]
        nics = [nic for nic in _in_subnets(attachment.subnets, facts) if nic not in taken]
        alike = sum(each.subnets == attachment.subnets for each in attachments[place:])
        subnets = " or ".join(attachment.subnets)
        if len(nics) != alike:
            names = ", ".join(nic.name for nic in nics) or "none"
            asked = "1 is" if alike == 1 else f"{alike} are"
            raise NoSuchNicError(
                f"{asked} asked for of the interfaces with an address in {subnets}, here: {names}"
            )
        found.append(FoundNic(nic=nics[0], status=None, how=f"its address is in {subnets}"))
    return tuple(found)


def _in_subnets(subnets: Sequence[str], facts: PodFacts) -> list[NicFacts]:
    try:
        networks = [ipaddress.ip_network(subnet, strict=False) for subnet in subnets]
    except ValueError as error:
        raise NoSuchNicError(f"no subnet: {error}") from error
    return sorted_nics(
        nic
        for nic in facts.hardware.nics
        if any(ipaddress.ip_interface(a).ip in each for a in nic.addresses for each in networks)
    )


def sorted_nics(nics: Iterable[NicFacts]) -> list[NicFacts]:
    """By name: `net2` before `net10`."""
    return sorted(nics, key=lambda nic: natural(nic.name))


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key of order: `net2` before `net10`."""
    parts = _DIGITS.split(name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def _here(facts: PodFacts) -> str:
    return ", ".join(each.name for each in facts.hardware.nics) or "none is here"
