"""What would a collective take over a network between this machine's emulated nodes?

Two things are measured on the machine: collectives over an unshaped link, which is the host's own
time, and over one that is shaped. A link of rate β needs bytes/β on the wire for the bytes that the
library sends (catalog/traffic.py); host_overlap.py says what host and wire take together.
"""

from dataclasses import dataclass, replace

from broadgauge.predict.asking.workload_case import fabric_of
from broadgauge.predict.case import CollectiveCurve, Fabric
from broadgauge.predict.costs.curves import rising, time_at
from broadgauge.predict.system.host_overlap import HostOverlap, host_overlaps, usual_overlap
from broadgauge.predict.system.paths import Paths, path_curves, sent_bytes
from broadgauge.specs.case import Backend
from broadgauge.specs.machines.system import PathTimes
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.collectives import CollectiveOp

OPS: tuple[CollectiveOp, ...] = ("all_reduce", "all_gather", "reduce_scatter")


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
    seen = host_overlaps(paths, host)
    usual = usual_overlap(seen.values(), host.backend)
    link = CrossedLink(
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        backend=host.backend,
        byte_per_s=None if payload is None else payload * network.num_nics * 1e9 / 8,
        overlap=usual,
        delay_s=network.delay_s,
    )
    curves = [
        link_curve(curve, replace(link, overlap=seen.get(curve.op, usual)))
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


def with_all_ops(
    curves: tuple[CollectiveCurve, ...], backend: Backend
) -> tuple[CollectiveCurve, ...]:
    """The same, with those collectives that were not measured by the bytes that they send."""
    known = {curve.op: curve for curve in curves}
    base = known.get("all_reduce") or next(iter(known.values()), None)
    if base is None:
        return curves
    missing = [op for op in OPS if op not in known]
    return (*curves, *(_derived(base, op, backend) for op in missing))


def _derived(base: CollectiveCurve, op: CollectiveOp, backend: Backend) -> CollectiveCurve:
    """A collective of the same bytes on the wire takes as long."""
    shape = (base.nodes, base.ranks_per_node)
    sizes = [
        size * sent_bytes(backend, base.op, *shape, size) / sent_bytes(backend, op, *shape, size)
        for size in base.message_bytes
    ]
    return replace(base, op=op, message_bytes=tuple(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedLink:
    """What a collective crosses."""

    nodes: int
    ranks_per_node: int
    backend: Backend
    byte_per_s: float | None
    """Payload out of a node; None: as fast as the host."""
    overlap: HostOverlap
    delay_s: float


def link_curve(host: CollectiveCurve, link: CrossedLink) -> CollectiveCurve:
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
        if link.byte_per_s is not None:
            host_s = link.overlap.together_s(host_s, sent / link.byte_per_s)
        times_s.append(host_s + turns * link.delay_s)
    return CollectiveCurve(
        op=host.op,
        nodes=link.nodes,
        ranks_per_node=link.ranks_per_node,
        message_bytes=host.message_bytes,
        time_s=rising(times_s),
    )
