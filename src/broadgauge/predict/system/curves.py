"""What would a collective take over a network between this machine's emulated nodes?

Two things are measured on the machine: collectives over an unshaped link, which is the host's own
time, and over one that is shaped. A link of rate β needs bytes/β on the wire for the bytes that the
library sends (catalog/traffic.py). Of the shorter of the two a part is hidden behind the longer:

    t = max(host, w · wire) + e · min(host, w · wire)

where w and e are what the shaped path shows: w is 1 but for a collective that doesn't fill the wire
by itself; e is nearly nothing for NCCL, which pipelines, and about half for Gloo, whose ranks
reduce one chunk while another is on its way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from broadgauge.catalog.traffic import gloo_node_bytes, ring_node_bytes
from broadgauge.predict.asking.workload_case import fabric_of
from broadgauge.predict.case import Curve, Fabric
from broadgauge.predict.costs.curves import rising, time_at
from broadgauge.specs.case import Backend
from broadgauge.specs.collectives import CollectiveOp
from broadgauge.specs.network import Network, payload_rate_gbps
from broadgauge.specs.system import PathTimes

UNHIDDEN_RATIO: Mapping[Backend, float] = {"nccl": 0.05, "gloo": 0.5}
"""e where no shaped path was measured. Source: docs/measurements.md: NCCL filled 99 to 100 % of a
shaped link, Gloo 97 % of one of 1 Gbit/s that its host could have filled 15 times."""
LEAST_WIRE_RATIO, MOST_WIRE_RATIO = 1.1, 3.0
"""Less is the host's own work, more something that disturbed the measurement."""
LONG_S = 3e-3
"""On the wire: 100 to 260 µs of each message pass a shaper at once (docs/architecture.md)."""
OPS: tuple[CollectiveOp, ...] = ("all_reduce", "all_gather", "reduce_scatter")


Paths = Sequence[PathTimes]


def host_path(paths: Paths, nodes: int, ranks_per_node: int) -> PathTimes | None:
    """The unshaped path between so many nodes, else between other numbers of nodes."""
    found = [
        path
        for path in paths
        if path.path == "emulated" and path.rate_gbps is None and path.collectives
    ]
    found.sort(key=lambda path: (path.ranks_per_node != ranks_per_node, abs(path.nodes - nodes)))
    return found[0] if found else None


def fabric_on(paths: Paths, network: Network, nodes: int, ranks_per_node: int) -> Fabric:
    """An emulated network on the machine of these paths, with curves; without where none can be."""
    fabric = fabric_of(network)
    host = host_path(paths, nodes, ranks_per_node)
    if host is None:
        return fabric
    payload = network.payload_rate_gbps
    link = Link(
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        backend=host.backend,
        byte_per_s=None if payload is None else payload * network.num_nics * 1e9 / 8,
        unhidden_ratio=UNHIDDEN_RATIO[host.backend],
        delay_s=network.delay_s,
    )
    wires, seen = wire_ratios(paths, host), unhidden_ratios(paths, host)
    curves = [
        link_curve(
            curve,
            replace(
                link,
                unhidden_ratio=seen.get(curve.op, link.unhidden_ratio),
                wire_ratio=wires.get(curve.op, 1.0),
            ),
        )
        for curve in path_curves(host)
    ]
    return replace(
        fabric,
        latency_s=network.delay_s + (host.round_trip_s or 0.0) / 2 or None,
        curves=tuple(curves),
    )


def host_share(paths: Paths, fabric: Fabric, message_bytes: float) -> float:
    """What part of an all_reduce's time is the host's own work, 0 to 1?

    On cores it is taken from what computes. 1 where the host's part is not known.
    """
    mine = next((curve for curve in fabric.curves if curve.op == "all_reduce"), None)
    if mine is None or not any(mine.time_s):  # one rank sends nothing
        return 1.0
    host = host_path(paths, mine.nodes, mine.ranks_per_node)
    alone = None if host is None else next(iter(path_curves(host)), None)
    if alone is None:
        return 1.0
    return min(1.0, time_at(alone, message_bytes) / time_at(mine, message_bytes))


def path_curves(path: PathTimes) -> tuple[Curve, ...]:
    """The collectives of one path, as they were measured."""
    curves = []
    for op in dict.fromkeys(each.op for each in path.collectives):
        mine = sorted(
            (each for each in path.collectives if each.op == op), key=lambda each: each.size_bytes
        )
        curves.append(
            Curve(
                op=op,
                nodes=path.nodes,
                ranks_per_node=path.ranks_per_node,
                message_bytes=tuple(float(each.size_bytes) for each in mine),
                time_s=rising([each.time.median_s for each in mine]),
            )
        )
    return tuple(curves)


def sent_bytes(
    backend: Backend, op: CollectiveOp, nodes: int, ranks_per_node: int, size_bytes: float
) -> float:
    """Bytes that leave the busiest node: Gloo's as it sends them, NCCL's as a ring."""
    count = gloo_node_bytes if backend == "gloo" else ring_node_bytes
    return count(op, nodes * ranks_per_node, size_bytes, ranks_per_node=ranks_per_node)


def with_all_ops(curves: tuple[Curve, ...], backend: Backend) -> tuple[Curve, ...]:
    """The same, with those collectives that were not measured by the bytes that they send."""
    known = {curve.op: curve for curve in curves}
    base = known.get("all_reduce") or next(iter(known.values()), None)
    if base is None:
        return curves
    missing = [op for op in OPS if op not in known]
    return (*curves, *(_derived(base, op, backend) for op in missing))


def _derived(base: Curve, op: CollectiveOp, backend: Backend) -> Curve:
    """A collective of the same bytes on the wire takes as long."""
    shape = (base.nodes, base.ranks_per_node)
    sizes = [
        size * sent_bytes(backend, base.op, *shape, size) / sent_bytes(backend, op, *shape, size)
        for size in base.message_bytes
    ]
    return replace(base, op=op, message_bytes=tuple(sizes))


def wire_ratios(paths: Paths, host: PathTimes) -> dict[CollectiveOp, float]:
    """How much longer than its bytes does each collective keep the wire busy? At least 1.

    By the largest sizes of the shaped paths, half of the host's work taken off. Gloo's all_gather
    needs some 1.5 times, whatever the rate: it does not send and receive all the time.
    """
    found = {}
    for curve in path_curves(host):
        seen = sorted(_filling(paths, host, curve), key=lambda row: row.wire_s)[-3:]
        if seen:
            ratio = float(np.median([(row.time_s - row.host_s / 2) / row.wire_s for row in seen]))
            found[curve.op] = 1.0 if ratio < LEAST_WIRE_RATIO else min(ratio, MOST_WIRE_RATIO)
    return found


def unhidden_ratios(paths: Paths, host: PathTimes) -> dict[CollectiveOp, float]:
    """e of each collective: the median over the sizes that fill the wire."""
    wires = wire_ratios(paths, host)
    found = {}
    for curve in path_curves(host):
        seen = [
            (row.time_s - wires[curve.op] * row.wire_s) / row.host_s
            for row in _filling(paths, host, curve)
        ]
        if seen:
            found[curve.op] = float(np.clip(np.median(seen), 0.0, 1.0))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filling:
    """One size on a shaped path."""

    time_s: float
    wire_s: float
    host_s: float


def _filling(paths: Paths, host: PathTimes, curve: Curve) -> Iterator[_Filling]:
    """The sizes whose wire time is more than the host's and than a few buckets'."""
    for shaped in paths:
        same = (shaped.nodes, shaped.ranks_per_node) == (host.nodes, host.ranks_per_node)
        if shaped.path != "emulated" or shaped.rate_gbps is None or not same:
            continue
        rate = payload_rate_gbps(shaped.rate_gbps, shaped.mtu_bytes or 1500) * 1e9 / 8
        for each in shaped.collectives:
            shape = (shaped.nodes, shaped.ranks_per_node)
            wire_s = sent_bytes(shaped.backend, each.op, *shape, each.size_bytes) / rate
            host_s = time_at(curve, each.size_bytes)
            if each.op == curve.op and wire_s > max(LONG_S, host_s):
                yield _Filling(time_s=each.time.median_s, wire_s=wire_s, host_s=host_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a collective crosses."""

    nodes: int
    ranks_per_node: int
    backend: Backend
    byte_per_s: float | None
    """Payload out of a node; None: as fast as the host."""
    unhidden_ratio: float
    delay_s: float
    wire_ratio: float = 1.0
    """By which the collective keeps the wire longer than its bytes need."""


def link_curve(host: Curve, link: Link) -> Curve:
    """The host's curve with the wire's time, for another number of nodes where need be."""
    was, now = host.nodes * host.ranks_per_node, link.nodes * link.ranks_per_node
    turns = (2 if host.op == "all_reduce" else 1) * (now - 1)
    times_s = []
    for size_bytes, measured_s in zip(host.message_bytes, host.time_s, strict=True):
        sent = sent_bytes(link.backend, host.op, link.nodes, link.ranks_per_node, size_bytes)
        host_s = measured_s
        if now != was:
            before = sent_bytes(link.backend, host.op, host.nodes, host.ranks_per_node, size_bytes)
            # Bytes grow with the ring's factor, latencies with its turns.
            floor_s = host.time_s[0]
            host_s = floor_s * (now - 1) / (was - 1) + (measured_s - floor_s) * sent / before
        wire_s = 0.0 if link.byte_per_s is None else link.wire_ratio * sent / link.byte_per_s
        longer_s, shorter_s = max(host_s, wire_s), min(host_s, wire_s)
        times_s.append(longer_s + link.unhidden_ratio * shorter_s + turns * link.delay_s)
    return Curve(
        op=host.op,
        nodes=link.nodes,
        ranks_per_node=link.ranks_per_node,
        message_bytes=host.message_bytes,
        time_s=rising(times_s),
    )
