"""Who calls whom, so that every pair of pods is tried, nobody is in two pairs at once, and the
whole takes seconds?

Rounds are those of a round-robin tournament by the circle method: one node stays, the others move
on by one place. n − 1 rounds for an even number of nodes, n for an odd one, in which each node has
a pause. Source: T. P. Kirkman, "On a problem in combinatorics" (1847).
"""

from collections.abc import Iterator, Sequence

from broadgauge.messages.preflight import PodAddress, Probe

STREAM_S = 0.1
STREAMS_S = 10.0
"""A node's share of time for streams. Where all of its pairs would take longer, only those with its
two neighbours in order of numbers have one: a ring, which every node is in."""
NicKey = tuple[str, int]


def rounds_of(nodes: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Every pair once, in rounds in which each node occurs at most once."""
    if len(nodes) < 2:
        return ()
    seats: list[int | None] = list(nodes)
    if len(seats) % 2:
        seats.append(None)
    rounds = []
    for _ in range(len(seats) - 1):
        facing = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
        rounds.append(tuple((a, b) for a, b in facing if a is not None and b is not None))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return tuple(rounds)


def plan_probes(addresses: Sequence[PodAddress], caller: int | None = None) -> tuple[Probe, ...]:
    """In order of rounds; of a pair each NIC in turn, with the other's of the same number.

    `caller`: that node's part alone, which each pod makes from all addresses itself. A pair is not
    tried over a NIC that one of the two lacks: `summarize` says so.
    """
    by_node: dict[int, dict[NicKey, PodAddress]] = {}
    for each in addresses:
        by_node.setdefault(each.node, {})[each.network, each.nic] = each
    nodes = sorted(by_node)
    streams = _stream_pairs(nodes, max(map(len, by_node.values()), default=0))
    return tuple(_probes(nodes, by_node, streams, caller))


def _probes(
    nodes: Sequence[int],
    by_node: dict[int, dict[NicKey, PodAddress]],
    streams: frozenset[tuple[int, int]],
    only: int | None,
) -> Iterator[Probe]:
    for number, pairs in enumerate(rounds_of(nodes)):
        for pair in pairs:
            caller, listener = _directed(*pair)
            if only not in (None, caller):
                continue
            here, there = by_node[caller], by_node[listener]
            for network, nic in here:
                if (network, nic) not in there:
                    continue
                yield Probe(
                    round=number,
                    caller=caller,
                    listener=listener,
                    network=network,
                    nic=nic,
                    source=here[network, nic].address,
                    address=there[network, nic].address,
                    port=there[network, nic].port,
                    stream_s=STREAM_S if (min(pair), max(pair)) in streams else 0.0,
                )


def _directed(one: int, other: int) -> tuple[int, int]:
    """Each node calls about half of its pairs."""
    low, high = min(one, other), max(one, other)
    return (low, high) if (low + high) % 2 else (high, low)


def _stream_pairs(nodes: Sequence[int], num_nics: int) -> frozenset[tuple[int, int]]:
    """All pairs, or those of a ring."""
    if (len(nodes) - 1) * num_nics * STREAM_S <= STREAMS_S:
        pairs = [(a, b) for at, a in enumerate(nodes) for b in nodes[at + 1 :]]
    else:
        ring = zip(nodes, [*nodes[1:], nodes[0]], strict=True)
        pairs = [(min(pair), max(pair)) for pair in ring]
    return frozenset(pairs)
