"""What is wrong between the pods, in a few lines? The pod, NIC or pair that explains the failures.

A node none of whose pairs works over a network is named once, not with each of its pairs; a network
over which nothing works is named alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from broadgauge.messages.preflight import (
    NetworkProblem,
    PodAddress,
    ProbeResult,
    RdmaReadiness,
)

SLOW_RATIO = 1 / 3
"""Of the median of a network's streams. Streams of other pairs may pass at the same time: half the
rate is no sign yet."""
FEWEST_STREAMS = 2
"""Of a node over a NIC, before it is called slow."""
MOST_PAIRS_SHOWN = 4
MOST_SETS = 4096
"""Of a problem: those of 256 nodes would not fit into a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightSummary:
    """Over all pods."""

    problems: tuple[NetworkProblem, ...]
    """Why launches would fail or hang."""
    notes: tuple[str, ...]
    """Why it may be slow, and what is not known."""


def summarize(
    addresses: Sequence[PodAddress],
    results: Sequence[ProbeResult],
    readiness: Sequence[RdmaReadiness],
) -> PreflightSummary:
    """What all pods said. Results are of pairs, each tried in one direction."""
    names = [each.network for each in addresses] + [each.network for each in readiness]
    networks = dict.fromkeys([*names, *(each.network for each in results)])
    problems: list[NetworkProblem] = []
    notes: list[str] = []
    for network in networks:
        there = [each for each in addresses if each.network == network]
        tried = [each for each in results if each.network == network]
        problems += _uneven_nics(network, there)
        problems += _failures(network, tried)
        problems += _not_ready(network, [each for each in readiness if each.network == network])
        notes += _mtus(network, there)
        notes += _slow(network, tried)
        notes += _rates(network, [each for each in readiness if each.network == network])
    return PreflightSummary(problems=tuple(problems), notes=tuple(notes))


def _uneven_nics(network: str, addresses: Sequence[PodAddress]) -> Iterator[NetworkProblem]:
    counts: dict[int, int] = {}
    for each in addresses:
        counts[each.node] = counts.get(each.node, 0) + 1
    if len(set(counts.values())) > 1:
        by_count: dict[int, list[int]] = {}
        for node, count in sorted(counts.items()):
            by_count.setdefault(count, []).append(node)
        shown = "; ".join(f"{count} on {_nodes(nodes)}" for count, nodes in by_count.items())
        text = f"network {network}: not every pod has as many NICs: {shown}"
        few, many = by_count[min(by_count)], by_count[max(by_count)]
        together = tuple((one, other) for one in few for other in many)
        yield NetworkProblem(network=network, text=text, together=together[:MOST_SETS])


def _failures(network: str, results: Sequence[ProbeResult]) -> Iterator[NetworkProblem]:
    failed = [each for each in results if not each.ok]
    if not failed:
        return

    def problem(text: str, *together: tuple[int, ...]) -> NetworkProblem:
        return NetworkProblem(network=network, text=f"network {network}{text}", together=together)

    if len(failed) == len(results) and len(_nodes_of(results)) > 2:
        yield problem(f": no pod reaches another: {_errors(failed)}", ())
        return
    left = failed
    for nic, node in _culprits(results):
        own = [each for each in left if each.nic == nic and node in (each.caller, each.listener)]
        left = [each for each in left if each not in own]
        if own:
            text = f", NIC {nic}: node {node} and all others fail: {_errors(own)}"
            yield problem(text, (node,))
    for each in left[:MOST_PAIRS_SHOWN]:
        yield problem(
            f", NIC {each.nic}: node {each.caller} does not reach node {each.listener}: "
            f"{each.error}",
            (each.caller, each.listener),
        )
    more = left[MOST_PAIRS_SHOWN:]
    if more:
        pairs = tuple((each.caller, each.listener) for each in more)
        yield problem(f": {len(more)} more pairs fail", *dict.fromkeys(pairs[:MOST_SETS]))


def _culprits(results: Sequence[ProbeResult]) -> Iterator[tuple[int, int]]:
    """NIC and node, where none of at least two pairs works."""
    good: dict[tuple[int, int], int] = {}
    bad: dict[tuple[int, int], int] = {}
    for each in results:
        for node in (each.caller, each.listener):
            counts = good if each.ok else bad
            counts[each.nic, node] = counts.get((each.nic, node), 0) + 1
    for nic, node in sorted(bad):
        if not good.get((nic, node)) and bad[nic, node] > 1:
            yield nic, node


def _not_ready(network: str, readiness: Sequence[RdmaReadiness]) -> Iterator[NetworkProblem]:
    """Equal problems of several nodes once."""
    by_problem: dict[str, list[int]] = {}
    for each in readiness:
        for problem in each.problems:
            by_problem.setdefault(problem, []).append(each.node)
    for problem, nodes in by_problem.items():
        yield NetworkProblem(
            network=network,
            text=f"network {network}, {_nodes(nodes)}: {problem}",
            together=tuple((node,) for node in nodes),
        )


def _mtus(network: str, addresses: Sequence[PodAddress]) -> Iterator[str]:
    by_mtu: dict[int, set[int]] = {}
    for each in addresses:
        if each.mtu_bytes is not None:
            by_mtu.setdefault(each.mtu_bytes, set()).add(each.node)
    if len(by_mtu) > 1:
        shown = "; ".join(f"{mtu} on {_nodes(sorted(by_mtu[mtu]))}" for mtu in sorted(by_mtu))
        yield f"network {network}: interfaces differ in MTU: {shown}"


def _slow(network: str, results: Sequence[ProbeResult]) -> Iterator[str]:
    """A node all of whose streams over a NIC are slow. One slow stream may have shared its time."""
    rates: dict[tuple[int, int], list[float]] = {}
    for each in results:
        for node in (each.caller, each.listener):
            if each.rate_gbyte_per_s is not None:
                rates.setdefault((each.nic, node), []).append(each.rate_gbyte_per_s)
    told = [each.rate_gbyte_per_s for each in results if each.rate_gbyte_per_s is not None]
    middle_gbyte_per_s = median(told) if told else 0.0
    for (nic, node), own in sorted(rates.items()):
        if len(own) >= FEWEST_STREAMS and max(own) < SLOW_RATIO * middle_gbyte_per_s:
            yield (
                f"network {network}, NIC {nic}: no stream of node {node} carried more than "
                f"{max(own):.3g} GB/s in a short look, the median is {middle_gbyte_per_s:.3g} GB/s"
            )


def _rates(network: str, readiness: Sequence[RdmaReadiness]) -> Iterator[str]:
    by_rate: dict[float, list[int]] = {}
    for each in readiness:
        for rate in each.rates_gbps:
            if rate is not None and each.node not in by_rate.setdefault(rate, []):
                by_rate[rate].append(each.node)
    if len(by_rate) > 1:
        shown = "; ".join(f"{rate:g} Gbit/s on {_nodes(by_rate[rate])}" for rate in sorted(by_rate))
        yield f"network {network}: RDMA ports differ in rate: {shown}"


def _nodes_of(results: Sequence[ProbeResult]) -> set[int]:
    return {node for each in results for node in (each.caller, each.listener)}


def _nodes(nodes: Sequence[int]) -> str:
    word = "node" if len(nodes) == 1 else "nodes"
    shown = ", ".join(map(str, nodes[:MOST_PAIRS_SHOWN]))
    more = len(nodes) - MOST_PAIRS_SHOWN
    return f"{word} {shown}" + (f" and {more} more" if more > 0 else "")


def _errors(failed: Sequence[ProbeResult]) -> str:
    """The commonest first."""
    counts: dict[str, int] = {}
    for each in failed:
        counts[each.error or ""] = counts.get(each.error or "", 0) + 1
    return "; ".join(sorted(counts, key=lambda error: (-counts[error], error))[:2])
