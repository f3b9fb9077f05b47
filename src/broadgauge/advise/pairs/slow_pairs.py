"""Which pair of nodes, which node or which groups stand out of pairwise rates?

First the nodes. A node's rate, as a sender and as a receiver, is that of its best pair: one bad
pair leaves it high, a bad NIC does not. So a slow node is told even where half of all pairs are its
own, as with one node of four. Then the pairs between the others, against the fast ones among them:
behind a slow uplink between two racks most pairs are slow, and the median pair is one of those.

The fast pairs are all of them, unless the rates fall into two groups far apart; then the upper.
Three conditions of a slow pair. *Large*: below 75 % of the median fast pair. Speeds of Ethernet and
PCIe come in steps, and the smallest leaves 62.5 % (25 of 40 Gbit/s; others 40 to 50 %), while
healthy pairs on one network differ by some percent. *Outlying*: four standard deviations below, by
the spread of the faster half of the fast pairs: on a network whose pairs all differ none is named.
*Its own*: below 75 % of the best that both of its ends do, so that two nodes with a fast pair of
their own don't make all others slow.
tests/advise/pairs/test_slow_pairs.py holds both error rates over simulated clusters.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from broadgauge.advise.limits import (
    FEWEST_ENDS,
    OUTLYING_DEVIATIONS,
    OUTLYING_TIMES,
    SLOW_PAIR_RATIO,
)
from broadgauge.advise.pairs.pair_words import (
    between_groups,
    first_parts,
    pair_name,
    pair_names,
    slow_end,
    what_groups_share,
)
from broadgauge.specs.case import Case
from broadgauge.specs.records.pair_rates import RankPair, largest_of_pairs, pair_rate_gbyte_per_s
from broadgauge.specs.records.record import Finding, Record, Severity
from broadgauge.specs.units import show_rate, show_ratio

_DEVIATIONS_PER_QUARTILE = 1.4826
"""Standard deviation over the median distance from the middle, of a normal distribution."""
_MOST_LINES = 8
"""Of evidence."""


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
    fix="speed and errors of the ports between them; a traceroute from either end",
)
BETWEEN_GROUPS = Advice(
    cause="what only the links between these groups share: an uplink between their switches that "
    "is slow, oversubscribed, or has lost a member of its bond; within its group each node is fast",
    fix="speed, errors and members of the switches' uplink ports; place jobs within one group "
    "until it is fixed",
)
BETWEEN_RANK_GROUPS = Advice(
    cause="the link between the groups: the sockets' link, a PCIe switch, NVLink only within them",
    fix="`nvidia-smi topo -m`: are these the groups of this machine, and are all links up?",
)
BETWEEN_RANKS = Advice(
    cause="the link between these two devices: a link that is down, or another PCIe root",
    fix="`nvidia-smi topo -m` and `nvidia-smi nvlink -s`: are all links up?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOutliers:
    """What stands out in one trial; ends are ranks."""

    senders: frozenset[int]
    """Ends that send slowly to every other one."""
    receivers: frozenset[int]
    pairs: tuple[RankPair, ...]
    """Slow pairs between ends that are not slow, slowest first."""
    groups: tuple[frozenset[int], ...]
    """Where `pairs` are all pairs between groups of ends and no others: these groups; else none."""
    fast_gbyte_per_s: float
    """Rate of the median fast pair between ends that are not slow."""


def outliers_of(rates: Mapping[RankPair, float]) -> PairOutliers:
    """Which senders, receivers and pairs stand out among these rates (any unit, above 0)?"""
    out, into = _best(rates, end=0), _best(rates, end=1)
    of_ends = {(a, b): rate / min(out[a], into[b]) for (a, b), rate in rates.items()}
    limit = max(1 - SLOW_PAIR_RATIO, OUTLYING_TIMES * (1 - median(_fast(of_ends.values()))))
    senders, receivers = _slow_ends(out, limit), _slow_ends(into, limit)
    others = {
        (a, b): rate for (a, b), rate in rates.items() if a not in senders and b not in receivers
    } or rates
    fast = _fast(others.values())
    middle = median(fast)
    spread = _DEVIATIONS_PER_QUARTILE * median(r - middle for r in fast if r >= middle)
    slow = max((1 - SLOW_PAIR_RATIO) * middle, OUTLYING_DEVIATIONS * spread)
    pairs = [
        w for w, rate in others.items() if middle - rate > slow and of_ends[w] < SLOW_PAIR_RATIO
    ]
    return PairOutliers(
        senders=senders,
        receivers=receivers,
        pairs=tuple(sorted(pairs, key=lambda pair: rates[pair])),
        groups=_groups(others, frozenset(pairs)),
        fast_gbyte_per_s=middle,
    )


def slow_pair(case: Case, record: Record) -> Iterator[Finding]:
    """The rule: a finding for each slow node, and one for the slow pairs between the others."""
    rows = largest_of_pairs(record.collectives)
    rates = {pair: pair_rate_gbyte_per_s(row) for pair, row in rows.items()}
    if len({end for pair in rates for end in pair}) < FEWEST_ENDS:
        return
    found = outliers_of(rates)
    for end in sorted(found.senders | found.receivers):
        yield _node_finding(case, end, found, rates)
    if found.pairs:
        yield _pairs_finding(case, found, rates)


def _node_finding(
    case: Case, end: int, found: PairOutliers, rates: Mapping[RankPair, float]
) -> Finding:
    sends, receives = end in found.senders, end in found.receivers
    pairs = [pair for pair in rates if (sends and pair[0] == end) or (receives and pair[1] == end)]
    best = max(rates[pair] for pair in pairs)
    advice = OF_A_NODE if case.nodes > 1 else OF_A_RANK
    return Finding(
        rule="slow-pair",
        severity=Severity.WARNING,
        symptom=f"{slow_end(case, end, sends=sends, receives=receives)}, whichever its partner: "
        f"at best {show_ratio(best / found.fast_gbyte_per_s)} of the median fast pair",
        evidence=_evidence(case, sorted(pairs, key=lambda pair: rates[pair]), found, rates),
        cause=advice.cause,
        fix=advice.fix,
    )


def _pairs_finding(case: Case, found: PairOutliers, rates: Mapping[RankPair, float]) -> Finding:
    ratio = show_ratio(rates[found.pairs[0]] / found.fast_gbyte_per_s)
    names = [*pair_names(case, found.pairs).values()]
    are, slowest = ("is", "") if len(names) == 1 else ("are", "the slowest ")
    if found.groups:
        advice = BETWEEN_GROUPS if case.nodes > 1 else BETWEEN_RANK_GROUPS
        what = f"{between_groups(case, found.groups)} are slow ({what_groups_share(case)})"
    else:
        advice = BETWEEN_NODES if case.nodes > 1 else BETWEEN_RANKS
        what = f"{first_parts(names)} {are} slow"
    return Finding(
        rule="slow-pair",
        severity=Severity.WARNING,
        symptom=f"{what}: {slowest}{ratio} of the median fast pair",
        evidence=_evidence(case, found.pairs, found, rates),
        cause=advice.cause,
        fix=advice.fix,
    )


def _evidence(
    case: Case, pairs: Iterable[RankPair], found: PairOutliers, rates: Mapping[RankPair, float]
) -> tuple[str, ...]:
    lines = [
        f"{pair_name(case, pair)}: {show_rate(8 * rates[pair])} of payload"
        for pair in list(pairs)[:_MOST_LINES]
    ]
    return (*lines, f"the median fast pair: {show_rate(8 * found.fast_gbyte_per_s)}")


def _fast(values: Iterable[float]) -> list[float]:
    """The upper of two groups far apart; all where there are no two such groups.

    Cut where the squares within both are least. Far apart: the lower mean is below 75 % of the
    upper, by more than four of the deviations within. An even spread, cut in its middle, has 3.5
    (half its width, over that width's half / √12), a normal one 2.7 (2 √(2/π) / √(1 - 2/π)).
    Source: N. Otsu, A threshold selection method from gray-level histograms, 1979, for the cut.
    """
    ordered = sorted(values)
    cuts = range(1, len(ordered))
    if not cuts:
        return ordered
    cut = min(cuts, key=lambda at: _squares(ordered[:at]) + _squares(ordered[at:]))
    low, high = ordered[:cut], ordered[cut:]
    within = ((_squares(low) + _squares(high)) / len(ordered)) ** 0.5
    apart = fmean(high) - fmean(low)
    is_far = apart > max((1 - SLOW_PAIR_RATIO) * fmean(high), OUTLYING_DEVIATIONS * within)
    return high if is_far else ordered


def _squares(values: Collection[float]) -> float:
    """Of the distances from their mean, added up."""
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def _groups(pairs: Iterable[RankPair], slow: frozenset[RankPair]) -> tuple[frozenset[int], ...]:
    """Ends joined by pairs that are not slow, where every slow pair leads from group to group.

    A group of one is no rack: its pairs are named.
    """
    group_of: dict[int, frozenset[int]] = {}
    for a, b in pairs:
        one, other = (group_of.get(end, frozenset({end})) for end in (a, b))
        joined = [one, other] if (a, b) in slow else [one | other]
        group_of.update({end: group for group in joined for end in group})
    groups = tuple(sorted(set(group_of.values()), key=min))
    inside = any(group_of[a] == group_of[b] for a, b in slow)
    is_split = len(groups) > 1 and not inside and all(len(group) > 1 for group in groups)
    return groups if is_split else ()


def _best(rates: Mapping[RankPair, float], *, end: int) -> dict[int, float]:
    """What each end sends (0) or receives (1) best."""
    best: dict[int, float] = defaultdict(float)
    for pair, rate in rates.items():
        best[pair[end]] = max(best[pair[end]], rate)
    return best


def _slow_ends(best: Mapping[int, float], limit: float) -> frozenset[int]:
    """Those whose best pair falls short of the median end's."""
    middle = median(best.values())
    return frozenset(end for end, rate in best.items() if 1 - rate / middle > limit)
