"""What are this run's networks in this pod? Printed for people, and for the pod's log.

`broadgauge.zip networks < networks.json`: a list of `PodNetwork`, or one; with nothing on its
standard input it says which interfaces and adapters there are.
"""

import json
import sys
from collections.abc import Iterator

from broadgauge.agent.pod.facts import PodFacts, read_pod_facts
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.messages.codec import DecodeError, Decoder
from broadgauge.messages.frames import plain_line
from broadgauge.messages.pod_network import PodNetwork

_NETWORKS: Decoder[tuple[PodNetwork, ...]] = Decoder(tuple[PodNetwork, ...])
REFUSED = 1
BAD_INPUT = 2


def read_networks(text: str) -> tuple[PodNetwork, ...]:
    """JSON of one or several. Raises ValueError."""
    told = json.loads(text)
    return _NETWORKS([told] if isinstance(told, dict) else told)


def describe(resolved: ResolvedNetwork) -> Iterator[str]:
    """Lines for people: what was found, each variable with its reason, problems and notes."""
    nics = ", ".join(map(" ".join, zip(resolved.interfaces, resolved.addresses, strict=True)))
    by = f"; RDMA by {', '.join(resolved.adapters)}" if resolved.adapters else ""
    yield f"network {resolved.name}: {nics or 'not found'}{by}"
    for reason in resolved.reasons:
        value = "unset" if reason.value is None else reason.value
        yield f"  {reason.variable}={value}: {reason.why}"
    for pair in resolved.pairs:
        yield f"  GPU {pair.gpu} to {pair.adapter}: {pair.distance}"
    yield from (f"  note: {note}" for note in resolved.notes)
    yield from (f"  refused: {problem}" for problem in resolved.problems)


def describe_pod(facts: PodFacts) -> Iterator[str]:
    """Which interfaces, adapters and attachments are here?"""
    for nic in facts.hardware.nics:
        addresses = ", ".join(nic.addresses) or "no address"
        route = ", default route" if nic.has_default_route else ""
        state = nic.state or "state unknown"
        yield f"interface {nic.name}: {nic.kind}, {state}, {addresses}{route}"
    for hca in facts.hardware.hcas:
        for port in hca.ports:
            gids = sum(row.kind == "RoCE v2" and row.ipv4 is not None for row in port.gids or ())
            layer = port.link_layer or "link layer unknown"
            yield f"adapter {hca.name}:{port.number}: {layer}, {port.state}, {gids} GIDs of RoCE v2"
    if facts.status is None:
        yield f"network status: {facts.status_problem or 'no annotation is mounted'}"
    for entry in facts.status or ():
        default = ", the pod's own" if entry.is_default else ""
        yield f"attachment {entry.name}: {entry.interface or 'no interface'}{default}"


def main() -> int:
    """1: a network is refused; 2: what was asked can't be read."""
    text = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    facts = read_pod_facts()
    if not text:
        sys.stdout.writelines(f"{plain_line(line)}\n" for line in describe_pod(facts))
        return 0
    try:
        networks = read_networks(text)
    except (DecodeError, json.JSONDecodeError) as error:
        sys.stderr.write(f"standard input holds no networks: {plain_line(str(error))}\n")
        return BAD_INPUT
    found = [resolve(network, facts) for network in networks]
    for each in found:
        sys.stdout.writelines(f"{plain_line(line)}\n" for line in describe(each))
    return REFUSED if any(each.problems for each in found) else 0
