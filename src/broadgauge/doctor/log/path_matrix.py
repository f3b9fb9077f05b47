"""Which way did each channel take between which ranks? As a matrix that fits a screen."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Way
from broadgauge.doctor.log.job import largest, nodes_of_ranks
from broadgauge.doctor.log.speakers import rank_words

MOST_ROWS = 16
"""Of a matrix: more do not fit a terminal."""
_UNKNOWN_NODE = "unknown node"
_ORDER = tuple(Way)

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathUse:
    """One way that pairs of ranks took."""

    way: str
    """As doctor/log/facts.py names it: `P2P`, `GDRDMA`."""
    num_pairs: int
    channels: tuple[int, ...]
    """All that any of the pairs has."""
    devices: tuple[str, ...] = ()
    """Of the network: `NET/IB/0`."""
    num_proxied: int = 0
    """Pairs that use another rank's NIC over NVLink (PXN)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCell:
    """From one row to one column."""

    uses: tuple[PathUse, ...] = ()
    """Empty: no channel between them, as far as the log tells."""

    @property
    def words(self) -> str:
        """`GDRDMA`, `P2P+SHM`; empty: none."""
        return "+".join(use.way for use in self.uses)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicatorName:
    """One that a matrix can be made of."""

    identity: str
    num_ranks: int | None
    num_nodes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMatrix:
    """Of one communicator."""

    communicator: CommunicatorName
    others: tuple[CommunicatorName, ...]
    """The other communicators of the log, largest first."""
    by: str
    """What a row is: `rank` or `node`."""
    labels: tuple[str, ...]
    """Of rows and of columns: `0`, or `node0`."""
    members: tuple[str, ...]
    """By row: its ranks in words."""
    cells: tuple[tuple[PathCell, ...], ...]
    """By row, by column: from the row to the column."""
    inside: tuple[PathUse, ...]
    """All pairs of ranks on one node, shown or not."""
    between: tuple[PathUse, ...]
    """All pairs of ranks on two nodes, shown or not."""
    num_left_out: int = 0
    """Nodes that no row shows: those whose ways are the commonest."""

    def to_json(self) -> dict[str, Any]:
        """As plain lists and objects."""
        return dataclasses.asdict(self)


def path_matrix(reading: LogReading, identity: str | None = None) -> PathMatrix | None:
    """Of the largest communicator, or of the one of this identity.

    Up to 16 ranks are shown one by one, more by node. None: no channel is known of it.
    """
    communicator = largest(reading) if identity is None else reading.communicators.get(identity)
    if communicator is None or not communicator.paths:
        return None
    nodes = nodes_of_ranks(reading, communicator)
    ranks = _ranks(communicator)
    is_small = len(ranks) <= MOST_ROWS
    groups = _grouped(ranks, {rank: str(rank) for rank in ranks} if is_small else nodes)
    shown = _shown(communicator, groups)
    pairs = communicator.paths
    return PathMatrix(
        communicator=_name(communicator),
        others=_others(reading, communicator),
        by="rank" if is_small else "node",
        labels=tuple(shown),
        members=tuple(rank_words(group) for group in shown.values()),
        cells=_cells(communicator, shown),
        inside=_uses(communicator, (p for p in pairs if _are_together(nodes, p) is True)),
        between=_uses(communicator, (p for p in pairs if _are_together(nodes, p) is not True)),
        num_left_out=len(groups) - len(shown),
    )


def _ranks(communicator: CommunicatorFacts) -> list[int]:
    known = {rank for pair in communicator.paths for rank in pair} | set(communicator.members)
    return sorted(known | set(range(communicator.num_ranks or 0)))


def _grouped(ranks: Sequence[int], nodes: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    groups: dict[str, list[int]] = {}
    for rank in ranks:
        groups.setdefault(nodes.get(rank, _UNKNOWN_NODE), []).append(rank)
    return {node: tuple(members) for node, members in groups.items()}


def _are_together(nodes: Mapping[int, str], pair: Pair) -> bool | None:
    first, second = nodes.get(pair[0]), nodes.get(pair[1])
    return None if first is None or second is None else first == second


def _shown(
    communicator: CommunicatorFacts, groups: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """All where they fit; else those whose ways are odd, then the first ones, in their order."""
    if len(groups) <= MOST_ROWS:
        return groups
    label_of = {rank: label for label, members in groups.items() for rank in members}
    found: dict[str, set[Way]] = {label: set() for label in groups}
    for pair, of_pair in communicator.paths.items():
        found[label_of[pair[0]]].update(of_pair)
    ways = {label: frozenset(several) for label, several in found.items()}
    common = Counter(ways.values()).most_common(1)[0][0]
    by_oddness = sorted(groups, key=lambda label: ways[label] == common)
    kept = set(by_oddness[:MOST_ROWS])
    return {label: members for label, members in groups.items() if label in kept}


def _cells(
    communicator: CommunicatorFacts, groups: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[PathCell, ...], ...]:
    """One pass over the pairs, however many rows there are."""
    row_of = {rank: i for i, members in enumerate(groups.values()) for rank in members}
    pairs: dict[Pair, list[Pair]] = {}
    for a, b in communicator.paths:
        if a in row_of and b in row_of:
            pairs.setdefault((row_of[a], row_of[b]), []).append((a, b))
    rows = range(len(groups))
    return tuple(
        tuple(PathCell(uses=_uses(communicator, pairs.get((i, j), ()))) for j in rows) for i in rows
    )


def _uses(communicator: CommunicatorFacts, pairs: Iterable[Pair]) -> tuple[PathUse, ...]:
    by_way: dict[Way, list[Pair]] = {}
    for pair in pairs:
        for way in communicator.paths[pair]:
            by_way.setdefault(way, []).append(pair)
    return tuple(_use(communicator, way, by_way[way]) for way in _ORDER if way in by_way)


def _use(communicator: CommunicatorFacts, way: Way, pairs: Sequence[Pair]) -> PathUse:
    is_network = way not in (Way.P2P, Way.SHM, Way.NVLS)
    devices = {d for pair in pairs for d in communicator.path_devices.get(pair, ())}
    return PathUse(
        way=way.value,
        num_pairs=len(pairs),
        channels=tuple(sorted(set().union(*(communicator.paths[pair][way] for pair in pairs)))),
        devices=tuple(sorted(devices)) if is_network else (),
        num_proxied=sum(pair in communicator.proxies for pair in pairs) if is_network else 0,
    )


def _name(communicator: CommunicatorFacts) -> CommunicatorName:
    return CommunicatorName(
        identity=communicator.identity,
        num_ranks=communicator.num_ranks,
        num_nodes=communicator.num_nodes,
    )


def _others(reading: LogReading, shown: CommunicatorFacts) -> tuple[CommunicatorName, ...]:
    others = [each for each in reading.communicators.values() if each is not shown]
    others.sort(key=lambda each: -(each.num_ranks or len(each.members)))
    return tuple(map(_name, others))
