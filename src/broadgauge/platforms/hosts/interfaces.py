"""By which of its interfaces does a host reach the others in a case?"""

import ipaddress

from broadgauge.agent.facts import HostFacts, InterfaceFacts
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.networks.found import Found

LOOPBACK = "lo"


def interfaces_of(case: Case, host: HostFacts) -> tuple[str, ...]:
    """Their names; the loopback on one node. Raises LaunchError where the host has none."""
    if case.link is None:
        return (LOOPBACK,)
    found = case.link.found
    assert found is not None, "the plan leaves out networks that are not found here"
    names = _named(found, host) if found.subnet is None else _in_subnet(found.subnet, host)
    if not names:
        known = ", ".join(_in_words(each) for each in host.interfaces) or "none"
        raise LaunchError(
            f"{host.hostname} has no interface of network {case.link.name} ({found.label})",
            hint=f"it has {known}",
        )
    return names


def _named(found: Found, host: HostFacts) -> tuple[str, ...]:
    known = {each.name for each in host.interfaces}
    wanted = found.interface or ()
    return wanted if known.issuperset(wanted) else ()


def _in_subnet(subnet: str, host: HostFacts) -> tuple[str, ...]:
    network = ipaddress.ip_network(subnet)
    return tuple(
        each.name
        for each in host.interfaces
        if each.address is not None and ipaddress.ip_address(each.address) in network
    )


def _in_words(interface: InterfaceFacts) -> str:
    return f"{interface.name} {interface.address or 'without an address'}"
