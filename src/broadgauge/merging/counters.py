"""What did the nodes' counters gain between marks?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from broadgauge.messages.counters import NicCounters, NodeCounters
from broadgauge.messages.vocabulary import UNDER_READ_RATIO, CounterKind
from broadgauge.specs.launching import Mark
from broadgauge.specs.records.record import NicUse, NodeUse

Traffic = tuple[tuple[int, int], ...]
"""By node: bytes sent, bytes received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedInterval:
    """What happened between the marks `<label>:begin` and `<label>:end`."""

    begin: Mark
    end: Mark

    @property
    def traffic(self) -> Traffic | None:
        """None where there is no link: all ranks on one node."""
        pairs = []
        for before, after in zip(self.begin.nodes, self.end.nodes, strict=True):
            sent, received = _gain(before, after, "tx_bytes"), _gain(before, after, "rx_bytes")
            if sent is None or received is None:
                return None
            pairs.append((int(sent), int(received)))
        return tuple(pairs) or None


def intervals_by_label(marks: Sequence[Mark]) -> dict[str, MarkedInterval]:
    """Marks in pairs; one without its partner (the trial failed there) is left out."""
    by_label = {mark.label: mark for mark in marks}
    begins = (label.removesuffix(":begin") for label in by_label if label.endswith(":begin"))
    return {
        label: MarkedInterval(begin=by_label[f"{label}:begin"], end=by_label[f"{label}:end"])
        for label in begins
        if f"{label}:end" in by_label
    }


def add_traffic(parts: Iterable[Traffic | None]) -> Traffic | None:
    """The sum over intervals; None when any is unknown or there is none."""
    known = list(parts)
    present = [part for part in known if part is not None]
    if not present or len(present) < len(known):
        return None
    return tuple(
        (sum(sent for sent, _ in node), sum(received for _, received in node))
        for node in zip(*present, strict=True)
    )


def busiest_bytes(traffic: Traffic) -> int:
    """How many bytes crossed the busiest node's link in its busier direction?"""
    return max(max(sent, received) for sent, received in traffic)


def nodes_use(intervals: Sequence[MarkedInterval]) -> tuple[NodeUse, ...]:
    """What did each node use in these intervals together?"""
    if not intervals:
        return ()
    elapsed_s = sum(interval.end.time_s - interval.begin.time_s for interval in intervals)
    num_nodes = len(intervals[0].begin.nodes)
    return tuple(_node_use(node, elapsed_s, intervals) for node in range(num_nodes))


def _node_use(node: int, elapsed_s: float, intervals: Sequence[MarkedInterval]) -> NodeUse:
    gains: dict[str, float | None] = {}
    for field in fields(NodeCounters):
        if field.name == "nics":
            continue
        parts = [_gain(i.begin.nodes[node], i.end.nodes[node], field.name) for i in intervals]
        known = [part for part in parts if part is not None]
        gains[field.name] = sum(known) if len(known) == len(parts) else None
    cores = intervals[0].begin.nodes[node].cores_count
    user_s, system_s, softirq_s = (
        gains[name] for name in ("cpu_user_s", "cpu_system_s", "cpu_softirq_s")
    )
    ranks_s, stolen_s, cores_s = gains["ranks_cpu_s"], gains["cpu_stolen_s"], elapsed_s * cores
    busy_s = total_of(user_s, system_s, softirq_s)
    programs_s = total_of(user_s, system_s)
    nics = _nics_use(node, intervals)
    foreign_s = None if ranks_s is None or programs_s is None else programs_s - ranks_s
    return NodeUse(
        node=node,
        elapsed_s=elapsed_s,
        tx_bytes=_whole(gains["tx_bytes"]),
        rx_bytes=_whole(gains["rx_bytes"]),
        drops_count=_whole(gains["drops_count"]),
        nics=nics,
        counted_by=None if gains["tx_bytes"] is None else _counted_by(nics),
        retransmits_count=_whole(gains["retransmits_count"]),
        cores_count=cores,
        cpu_user_s=user_s,
        cpu_system_s=system_s,
        cpu_softirq_s=softirq_s,
        cpu_busy_ratio=None if busy_s is None else _share(busy_s, cores_s),
        ranks_cpu_s=ranks_s,
        foreign_busy_ratio=None if foreign_s is None else _share(foreign_s, cores_s),
        stolen_ratio=None if stolen_s is None else _share(stolen_s, cores_s),
    )


def total_of(*parts: float | None) -> float | None:
    """The sum of these; None when one is unknown."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _nics_use(node: int, intervals: Sequence[MarkedInterval]) -> tuple[NicUse, ...]:
    """Each NIC by its name; one that is not there at every mark is left out."""
    ends = [(i.begin.nodes[node].nics, i.end.nodes[node].nics) for i in intervals]
    names = [nic.name for nic in ends[0][0]]
    used = []
    for name in names:
        pairs = [(_nic(name, before), _nic(name, after)) for before, after in ends]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(known) == len(pairs):
            drops = [_gain(a, b, "drops_count") for a, b in known]
            used.append(
                NicUse(
                    name=name,
                    tx_bytes=sum(after.tx_bytes - before.tx_bytes for before, after in known),
                    rx_bytes=sum(after.rx_bytes - before.rx_bytes for before, after in known),
                    drops_count=None if None in drops else int(sum(d or 0 for d in drops)),
                    counted_by=known[0][1].kind,
                )
            )
    return tuple(used)


def _counted_by(nics: Sequence[NicUse]) -> CounterKind | None:
    """Who counted their sum? Of several kinds the one that misses most; None: of one not known."""
    kinds = [nic.counted_by for nic in nics]
    known = [kind for kind in kinds if kind is not None]
    if not known or len(known) < len(kinds):
        return None
    return max(known, key=lambda kind: UNDER_READ_RATIO.get(kind, 0.0))


def _nic(name: str, nics: Sequence[NicCounters]) -> NicCounters | None:
    return next((nic for nic in nics if nic.name == name), None)


def _share(part_s: float, cores_s: float) -> float:
    """Within 0 and 1: ticks of 10 ms over a short time sum to a little less or more."""
    return min(1.0, max(0.0, part_s / cores_s)) if cores_s > 0 else 0.0


def _gain(
    before: NodeCounters | NicCounters, after: NodeCounters | NicCounters, name: str
) -> float | None:
    first, last = getattr(before, name), getattr(after, name)
    return None if first is None or last is None else last - first


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
