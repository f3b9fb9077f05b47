"""What are the networks of a preflight in this pod, and is RDMA there where it is asked for?"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.network_start import facts_with_nics
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.agent.preflight.part import LookedUpMachine, LookedUpNetwork
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.pod_log import say
from broadgauge.messages.preflight import CheckedNetwork

ReadFacts = Callable[[Mapping[str, str]], PodFacts]
"""Of this pod, whose ranks are given these variables beside its own."""


def look_for_networks(
    networks: tuple[CheckedNetwork, ...], read: ReadFacts, limit_s: float
) -> LookedUpMachine:
    """Their annotation may still be to come: so long it is waited for."""
    end_s = time.monotonic() + limit_s
    found = tuple(
        _found(each, each.network, read, end_s) for each in networks if each.network is not None
    )
    return LookedUpMachine(hardware=read({}).hardware, networks=found)


def _found(
    checked: CheckedNetwork, asked: AskedNetwork, read: ReadFacts, end_s: float
) -> LookedUpNetwork:
    """What stands in the way of every kind of its launches is its problem. A launch waits longer
    for a status that is still to come."""
    variants = []
    for given in checked.given or ({},):
        left_s = max(end_s - time.monotonic(), 0.0)
        facts = facts_with_nics(asked, partial(read, given), say, limit_s=left_s)
        variants.append((resolve(asked, facts), facts))
    first, facts = variants[0]
    shared = [
        problem
        for problem in first.problems
        if all(problem in other.problems for other, _ in variants[1:])
    ]
    if shared and asked.attachments and facts.status is None:
        return LookedUpNetwork(name=checked.name, unknown=shared[0])
    return LookedUpNetwork(
        name=checked.name,
        interfaces=first.interfaces,
        addresses=first.addresses,
        problems=tuple(shared),
        is_rdma=bool(first.adapters),
        port_rates_gbps=tuple(_rates(first, facts)),
    )


def _rates(network: ResolvedNetwork, facts: PodFacts) -> Iterator[float]:
    for name in network.adapters:
        hca, _, number = name.partition(":")
        found = facts.hca(hca)
        for port in () if found is None else found.ports:
            if str(port.number) == number and port.rate_gbps is not None:
                yield port.rate_gbps
