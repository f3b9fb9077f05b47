"""Which way between two nodes, or which node, stands out of its trial's pairwise rates?

First the nodes. A node's rate, as a sender and as a receiver, is that of its best way: one bad way
leaves it high, a bad NIC does not. So a slow node is told even where half of all ways are its own,
as with one node of four. Then the ways between the others, against their median.

Two conditions, both needed. *Large*: below 75 % of the median. Speeds of Ethernet and PCIe come in
steps, and the smallest leaves 62.5 % (25 of 40 Gbit/s; others 40 to 50 %), while healthy ways on
one network differ by some percent. *Outlying*: four standard deviations below, by the spread of
the faster half, which slow ways leave as it is: on a network whose ways all differ none is named.
tests/advise/test_slow_pairs.py holds both error rates over simulated clusters.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from broadgauge.specs.case import Case
from broadgauge.specs.pairs import RankPair, largest_of_pairs, pair_rate_gbyte_per_s
from broadgauge.specs.record import Finding, Record, Severity
from broadgauge.specs.units import show_rate, show_ratio

SLOW_RATIO = 0.75
OUTLYING_DEVIATIONS = 4.0
OUTLYING_TIMES = 4.0
"""Of a node's best way, as many times as the typical way falls short of its ends' best ones."""
DEVIATIONS_PER_QUARTILE = 1.4826
"""Standard deviation over the median distance from the middle, of a normal distribution."""
FEWEST_ENDS = 3
"""Of two ends one can't say which way is the slow one."""
MOST_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What may be behind it, and what to look at."""

    cause: str
    fix: str


OF_A_NODE = Advice(
    cause="what is that node's own: its NIC's speed or slot, its cable, its port, its cores",
    fix="compare `ethtool` (speed, errors) and `lspci -vv` (LnkSta) of its NIC with another "
    "node's; swap its cable and port",
)
OF_A_RANK = Advice(
    cause="what is that rank's own: its device's slot or link, its cores",
    fix="compare `nvidia-smi topo -m` and `nvidia-smi -q -d PCIE` of its GPU with another's",
)
BETWEEN_NODES = Advice(
    cause="what only they share: a cable or uplink between their switches, or the route taken; "
    "both ends are fast with others, so it is not their NICs",
    fix="speed and errors of the ports on the way between them; a traceroute from either end",
)
BETWEEN_RANKS = Advice(
    cause="the way between these two devices: a link that is down, or another PCIe root",
    fix="`nvidia-smi topo -m` and `nvidia-smi nvlink -s`: are all links up?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowWays:
    """What stands out in one trial; ends are ranks."""

    senders: frozenset[int]
    """Ends that send slowly to every other one."""
    receivers: frozenset[int]
    pairs: tuple[RankPair, ...]
    """Slow ways between ends that are not slow, slowest first."""
    median_gbyte_per_s: float
    """Rate of the median way between ends that are not slow."""


def slow_ways(rates: Mapping[RankPair, float]) -> SlowWays:
    """Which senders, receivers and ways stand out among these rates (any unit, above 0)?"""
    out, into = _best(rates, end=0), _best(rates, end=1)
    shortfalls = [1 - rate / min(out[a], into[b]) for (a, b), rate in rates.items()]
    limit = max(1 - SLOW_RATIO, OUTLYING_TIMES * median(shortfalls))
    senders, receivers = _slow_ends(out, limit), _slow_ends(into, limit)
    others = {
        (a, b): rate for (a, b), rate in rates.items() if a not in senders and b not in receivers
    } or rates
    middle = median(others.values())
    spread = DEVIATIONS_PER_QUARTILE * median(r - middle for r in others.values() if r >= middle)
    slow = max((1 - SLOW_RATIO) * middle, OUTLYING_DEVIATIONS * spread)
    pairs = [way for way, rate in others.items() if middle - rate > slow]
    return SlowWays(
        senders=senders,
        receivers=receivers,
        pairs=tuple(sorted(pairs, key=lambda way: rates[way])),
        median_gbyte_per_s=middle,
    )


def slow_pair(case: Case, record: Record) -> Iterator[Finding]:
    """The rule: a finding for each slow node, and one for the slow ways between the others."""
    rows = largest_of_pairs(record.collectives)
    rates = {way: pair_rate_gbyte_per_s(row) for way, row in rows.items()}
    if len({end for way in rates for end in way}) < FEWEST_ENDS:
        return
    found = slow_ways(rates)
    for end in sorted(found.senders | found.receivers):
        yield _node_finding(case, end, found, rates)
    if found.pairs:
        yield _pairs_finding(case, found, rates)


def _node_finding(
    case: Case, end: int, found: SlowWays, rates: Mapping[RankPair, float]
) -> Finding:
    sends, receives = end in found.senders, end in found.receivers
    ways = [way for way in rates if (sends and way[0] == end) or (receives and way[1] == end)]
    verb = "sends and receives" if sends and receives else "sends" if sends else "receives"
    name = _name(case, end)
    best = max(rates[way] for way in ways)
    return Finding(
        rule="slow-pair",
        severity=Severity.WARNING,
        symptom=f"{name} {verb} slowly, whichever its partner: at best "
        f"{show_ratio(best / found.median_gbyte_per_s)} of the median pair",
        evidence=_evidence(case, sorted(ways, key=lambda way: rates[way]), found, rates),
        cause=OF_A_NODE.cause if case.nodes > 1 else OF_A_RANK.cause,
        fix=OF_A_NODE.fix if case.nodes > 1 else OF_A_RANK.fix,
    )


def _pairs_finding(case: Case, found: SlowWays, rates: Mapping[RankPair, float]) -> Finding:
    names = list(_names(case, found.pairs))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    are, slowest = ("is", "") if len(names) == 1 else ("are", "the slowest ")
    ratio = rates[found.pairs[0]] / found.median_gbyte_per_s
    return Finding(
        rule="slow-pair",
        severity=Severity.WARNING,
        symptom=f"{'; '.join(names[:MOST_NAMED])}{more} {are} slow: "
        f"{slowest}{show_ratio(ratio)} of the median pair",
        evidence=_evidence(case, found.pairs, found, rates),
        cause=BETWEEN_NODES.cause if case.nodes > 1 else BETWEEN_RANKS.cause,
        fix=BETWEEN_NODES.fix if case.nodes > 1 else BETWEEN_RANKS.fix,
    )


def _evidence(
    case: Case, ways: Iterable[RankPair], found: SlowWays, rates: Mapping[RankPair, float]
) -> tuple[str, ...]:
    lines = [
        f"{_name(case, a)} to {_name(case, b)}: {show_rate(8 * rates[a, b])} of payload"
        for a, b in list(ways)[:MOST_NAMED]
    ]
    return (*lines, f"the median pair: {show_rate(8 * found.median_gbyte_per_s)}")


def _names(case: Case, ways: Iterable[RankPair]) -> Iterator[str]:
    """`node 1 to node 3 and back`: both directions of a pair in one."""
    directions: dict[RankPair, list[RankPair]] = defaultdict(list)
    for a, b in ways:
        directions[min(a, b), max(a, b)].append((a, b))
    for both in directions.values():
        a, b = min(both)
        back = " and back" if len(both) == 2 else ""
        yield f"{_name(case, a)} to {_name(case, b)}{back}"


def _name(case: Case, rank: int) -> str:
    return f"node {rank // case.ranks_per_node}" if case.nodes > 1 else f"rank {rank}"


def _best(rates: Mapping[RankPair, float], *, end: int) -> dict[int, float]:
    """What each end sends (0) or receives (1) best."""
    best: dict[int, float] = defaultdict(float)
    for way, rate in rates.items():
        best[way[end]] = max(best[way[end]], rate)
    return best


def _slow_ends(best: Mapping[int, float], limit: float) -> frozenset[int]:
    """Those whose best way falls short of the median end's."""
    middle = median(best.values())
    return frozenset(end for end, rate in best.items() if 1 - rate / middle > limit)
