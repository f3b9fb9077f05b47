"""What is wrong with the networks, in a few lines? The machine, NIC or pair that explains it.

No I/O. A machine none of whose pairs works over a network is named once, not with each of its
pairs; a network over which nothing works is named alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from broadgauge.leader.preflight.checked import MOST_SHOWN, Checked
from broadgauge.messages.preflight import CheckedNic, PairResult, PreflightFinding

MOST_IP_BYTES = 65535
"""Of a packet. The loopback's MTU is one more. Source: RFC 791, 3.1, "Total Length"."""


def of_networks(checked: Checked) -> Iterator[PreflightFinding]:
    """Of each that was asked for."""
    names = dict.fromkeys(
        here.network for each in checked.opened.values() for here in each.networks
    )
    for network in names:
        nics = [n for each in checked.opened.values() for n in each.nics if n.network == network]
        of_this = [each for each in checked.results if each.network == network]
        results = [each for each in of_this if each.is_tried]
        yield from _problems(network, checked)
        yield from _not_known(network, checked)
        yield from _failures(network, nics, results, checked)
        if len(results) < len(of_this):
            text = f"network {network}: {len(of_this) - len(results)} calls were not tried in time"
            yield PreflightFinding(kind="unknown", text=text, network=network)
        yield from _narrow_paths(network, nics, results, checked)
        yield from _differences(network, nics, checked)


def _problems(network: str, checked: Checked) -> Iterator[PreflightFinding]:
    """Equal ones of several machines once."""
    by_text: dict[str, list[int]] = {}
    for agent, each in checked.opened.items():
        for here in each.networks:
            for problem in here.problems if here.network == network else ():
                by_text.setdefault(problem, []).append(agent)
    for problem, agents in by_text.items():
        yield PreflightFinding(
            kind="fails",
            text=f"network {network}, {checked.named(agents)}: {problem}",
            network=network,
            agents=tuple((agent,) for agent in agents),
        )


def _not_known(network: str, checked: Checked) -> Iterator[PreflightFinding]:
    """Equal ones of several machines once; a launch may yet find it."""
    by_text: dict[str, list[int]] = {}
    for agent, each in checked.opened.items():
        for here in each.networks:
            if here.network == network and here.unknown is not None:
                by_text.setdefault(here.unknown, []).append(agent)
    for text, agents in by_text.items():
        words = f"network {network}, {checked.named(agents)}: {text}"
        yield PreflightFinding(kind="unknown", text=words, network=network)


def _failures(
    network: str, nics: Sequence[CheckedNic], results: Sequence[PairResult], checked: Checked
) -> Iterator[PreflightFinding]:
    """Of a network that goes by RDMA, TCP has to reach the others over its first NIC alone."""
    is_rdma = any(
        here.is_rdma
        for each in checked.opened.values()
        for here in each.networks
        if here.network == network
    )
    for nic in sorted({each.nic for each in results}):
        own = [each for each in results if each.nic == nic]
        addresses = {each.agent: each.address for each in nics if each.nic == nic}
        for words, pairs in _of_nic(own, addresses, checked):
            if is_rdma and nic > 0:
                text = f"network {network}, NIC {nic}, by TCP: {words}"
                yield PreflightFinding(kind="differs", text=text, network=network)
            else:
                text = f"network {network}, NIC {nic}: {words}"
                yield PreflightFinding(kind="fails", text=text, network=network, agents=pairs)


def _of_nic(
    results: Sequence[PairResult], addresses: Mapping[int, str], checked: Checked
) -> Iterator[tuple[str, tuple[tuple[int, ...], ...]]]:
    """In words, and which machines can't be together."""
    failed = [each for each in results if each.trouble is not None]
    if not failed:
        return
    if len(failed) == len(results) and len({each.caller for each in results}) > 2:
        yield f"no machine reaches another: {_troubles(failed)}", tuple(_pairs(failed))
        return
    by_agent: dict[int, list[PairResult]] = {}
    for each in failed:
        by_agent.setdefault(each.caller, []).append(each)
        by_agent.setdefault(each.listener, []).append(each)
    alone = set(_alone(results, by_agent))
    for agent in sorted(alone):
        words = f"{_at(agent, addresses, checked)} and all others don't reach each other"
        yield f"{words}: {_troubles(by_agent[agent])}", ((agent,),)
    left = [each for each in failed if not alone & {each.caller, each.listener}]
    pairs = _pairs(left)
    for pair in pairs[:MOST_SHOWN]:
        named = {agent: _at(agent, addresses, checked) for agent in pair}
        yield _pair_words(pair, left, named), (pair,)
    if more := pairs[MOST_SHOWN:]:
        yield f"{len(more)} more pairs don't reach each other", tuple(more)


def _at(agent: int, addresses: Mapping[int, str], checked: Checked) -> str:
    """`node-a at 10.0.0.5`: a wrong address is what is wrong as often as a network."""
    address = addresses.get(agent)
    return checked.name(agent) + ("" if address is None else f" at {address}")


def _alone(
    results: Sequence[PairResult], failed: Mapping[int, Sequence[PairResult]]
) -> Iterator[int]:
    """Machines that fail with two others at least, and reach and are reached by none."""
    good = {
        agent for each in results if each.trouble is None for agent in (each.caller, each.listener)
    }
    for agent, own in failed.items():
        others = {each.caller for each in own} | {each.listener for each in own}
        if agent not in good and len(others) > 2:
            yield agent


def _pair_words(
    pair: tuple[int, int], failed: Sequence[PairResult], named: Mapping[int, str]
) -> str:
    own = [each for each in failed if {each.caller, each.listener} == set(pair)]
    callers = sorted({each.caller for each in own})
    if len(callers) == 2:
        words = f"{named[pair[0]]} and {named[pair[1]]} don't reach each other"
    else:
        (caller,), (other,) = callers, [each for each in pair if each != callers[0]]
        words = f"{named[caller]} does not reach {named[other]}"
    return f"{words}: {_troubles(own)}"


def _pairs(failed: Sequence[PairResult]) -> list[tuple[int, int]]:
    """In the order of their numbers, each once."""
    both = ((each.caller, each.listener) for each in failed)
    return sorted({(min(pair), max(pair)) for pair in both})


def _narrow_paths(
    network: str, nics: Sequence[CheckedNic], results: Sequence[PairResult], checked: Checked
) -> Iterator[PreflightFinding]:
    """A router on the way says that its packets are smaller: bytes arrive, in more packets."""
    own = {(nic.agent, nic.nic): nic.mtu_bytes for nic in nics}
    narrow: dict[tuple[int, int], list[PairResult]] = {}
    for each in results:
        mtu = own.get((each.caller, each.nic))
        path = each.path_mtu_bytes
        if mtu is not None and path is not None and path < min(mtu, MOST_IP_BYTES):
            narrow.setdefault((mtu, path), []).append(each)
    for (mtu, path), found in sorted(narrow.items()):
        pairs = [f"{checked.name(each.caller)} to {checked.name(each.listener)}" for each in found]
        more = f" and {len(pairs) - MOST_SHOWN} more" if len(pairs) > MOST_SHOWN else ""
        yield PreflightFinding(
            kind="differs",
            text=f"network {network}: MTU {mtu} is set, and the way carries {path} "
            f"({', '.join(pairs[:MOST_SHOWN])}{more})",
            network=network,
        )


def _differences(
    network: str, nics: Sequence[CheckedNic], checked: Checked
) -> Iterator[PreflightFinding]:
    mtus = {(nic.agent, nic.nic): nic.mtu_bytes for nic in nics if nic.mtu_bytes is not None}
    speeds = {(nic.agent, nic.nic): nic.speed_mbps for nic in nics if nic.speed_mbps is not None}
    rates = {
        (agent, number): rate
        for agent, each in checked.opened.items()
        for here in each.networks
        for number, rate in enumerate(here.port_rates_gbps if here.network == network else ())
    }
    for what, values, show in (
        ("NICs differ in MTU", mtus, lambda value: f"{value}"),
        ("NICs differ in speed", speeds, lambda value: f"{value / 1000:g} Gbit/s"),
        ("RDMA ports differ in rate", rates, lambda value: f"{value:g} Gbit/s"),
    ):
        told = _unequal(values, show, checked)
        if told is not None:
            text = f"network {network}: {what}: {told}"
            yield PreflightFinding(kind="differs", text=text, network=network)


def _unequal(
    values: Mapping[tuple[int, int], float], show: Callable[[float], str], checked: Checked
) -> str | None:
    agents: dict[float, list[int]] = {}
    for (agent, _), value in sorted(values.items()):
        if agent not in agents.setdefault(value, []):
            agents[value].append(agent)
    if len(agents) < 2:
        return None
    return "; ".join(f"{show(value)} on {checked.named(agents[value])}" for value in sorted(agents))


def _troubles(failed: Sequence[PairResult]) -> str:
    """The commonest first."""
    counts = Counter(each.trouble or "" for each in failed)
    return "; ".join(sorted(counts, key=lambda text: (-counts[text], text))[:2])
