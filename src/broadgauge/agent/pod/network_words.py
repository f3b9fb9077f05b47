"""What was found of a network in this pod, in lines for people."""

from collections.abc import Iterator

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.resolve import ResolvedNetwork


def plain(line: str) -> str:
    """Names and values are others': no line ends in them, and no terminal does as they say."""
    shown = (
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in line
    )
    return "".join(shown)


def describe(resolved: ResolvedNetwork, facts: PodFacts) -> Iterator[str]:
    """What was found, each variable with its reason, which GPU is near which adapter, notes."""
    return map(plain, _describe(resolved, facts))


def _describe(resolved: ResolvedNetwork, facts: PodFacts) -> Iterator[str]:
    pairs = zip(resolved.interfaces, resolved.addresses, strict=True)
    nics = ", ".join(" ".join(pair).rstrip() for pair in pairs)
    unknown = "not found" if resolved.problems else "as the experiment or the image says"
    by = f"; RDMA by {', '.join(resolved.adapters)}" if resolved.adapters else ""
    yield f"network {resolved.name}: {nics or unknown}{by}"
    for reason in resolved.reasons:
        if reason.value is None:
            yield f"  {reason.variable} is left unset: {reason.why}"
        else:
            yield f"  {reason.variable}={reason.value} ({reason.why})"
    decided = {reason.variable for reason in resolved.reasons}
    others = [name for name in sorted(facts.given) if name not in decided]
    if others:
        yield f"  as the manifest or the image has them: {', '.join(others)}"
    for pair in resolved.pairs:
        yield f"  GPU {pair.gpu} to {pair.adapter}: {pair.distance}"
    yield from (f"  note: {note}" for note in resolved.notes)


def refused(resolved: ResolvedNetwork) -> Iterator[str]:
    """Why nothing is started; empty: it is."""
    return (plain(f"refused: network {resolved.name}: {each}") for each in resolved.problems)


def describe_pod(facts: PodFacts) -> Iterator[str]:
    """Which interfaces, adapters and attachments are here?"""
    return map(plain, _describe_pod(facts))


def _describe_pod(facts: PodFacts) -> Iterator[str]:
    for nic in facts.hardware.nics:
        addresses = ", ".join(nic.addresses) or "no address"
        route = ", default route" if nic.has_default_route else ""
        state = nic.state or "state unknown"
        yield f"interface {nic.name}: {nic.kind}, {state}, {addresses}{route}"
    for hca in facts.hardware.hcas:
        file = facts.verbs_files.get(hca.name)
        is_open = file in facts.hardware.rdma.device_files
        of_file = f", {file}{'' if is_open else ' is not in this container'}" if file else ""
        for port in hca.ports:
            gids = ", ".join(
                f"{row.index} {row.ipv4}"
                for row in port.gids or ()
                if row.kind == "RoCE v2" and row.ipv4 is not None
            )
            layer = port.link_layer or "link layer unknown"
            shown = f"; RoCE v2 GIDs {gids}" if gids else ""
            yield f"adapter {hca.name}:{port.number}: {layer}, {port.state}{of_file}{shown}"
    if facts.status is None or facts.status_problem is not None:
        yield f"network status: {facts.status_problem or 'no annotation of Multus is mounted'}"
    for entry in facts.status or ():
        default = ", the pod's own" if entry.is_default else ""
        addresses = f" {', '.join(entry.addresses)}" if entry.addresses else ""
        yield f"attachment {entry.name}: {entry.interface or 'no interface'}{addresses}{default}"
