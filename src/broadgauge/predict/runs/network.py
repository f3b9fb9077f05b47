"""What would a network carry on the machine of a run? From its own collectives where it has them.

On a network that was found: the run's own collectives at another rate (found_network.py). Else, in
this order: collectives that were measured on this very network among these ranks; those of an
unshaped network of the run or of a system file, with the wire's time of the network's rate; else
the rate of the link alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from broadgauge.messages.strategies import STRATEGIES
from broadgauge.predict.asking.workload_case import HOST_LATENCY_S, fabric_of
from broadgauge.predict.case import CollectiveCurve, Fabric
from broadgauge.predict.costs.curves import time_at
from broadgauge.predict.runs.cases import RunCase
from broadgauge.predict.runs.found_network import (
    asked_byte_per_s,
    carried_byte_per_s,
    compared_byte_per_s,
    curves_at,
    host_ratio_of,
    is_on_found,
)
from broadgauge.predict.system.curves import (
    OPS,
    CrossedLink,
    fabric_on,
    host_path,
    host_share,
    link_curve,
    with_all_ops,
)
from broadgauge.predict.system.host_overlap import USUAL
from broadgauge.predict.system.paths import sent_bytes
from broadgauge.specs.case import Backend
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import PathTimes
from broadgauge.specs.networks.network import AnyNetwork, Network

Basis = Literal["own", "found", "host", "line", "unknown"]
"""Own collectives; those of a found network at another rate; the host's, with the line's rate; the
line's rate alone; nothing."""
HOST_BYTE_PER_S: dict[Backend, float] = {"gloo": 1.9e9, "nccl": 5.2e9}
"""What one host carries between its emulated nodes with default settings. Source:
docs/measurements.md: Gloo over sockets 1.91 to 1.95 GB/s, NCCL unshaped 5.20 GB/s."""
SIZES = tuple(float(2**power) for power in range(10, 31, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFabric:
    """A fabric with curves, and what they rest on."""

    fabric: Fabric
    basis: Basis
    host_ratio: float
    """Share of a collective's time that is the host's own work and not the wire's, 0 to 1."""


def carried(
    base: RunCase, network: AnyNetwork | None, nodes: int, paths: Sequence[PathTimes]
) -> CarriedFabric:
    """What this network carries among so many nodes of the run's ranks."""
    case = base.case
    shape = (nodes, case.ranks_per_node)
    is_own = network == case.network and nodes == case.nodes
    if not isinstance(network, Network):
        curves = base.curves if is_own else ()
        basis: Basis = "own" if curves else "unknown"
        return CarriedFabric(fabric=Fabric(curves=curves), basis=basis, host_ratio=1.0)
    if is_on_found(case):
        return _from_found(base, network, nodes, is_own=is_own)
    message_bytes = _usual_message_bytes(base)
    if is_own and base.curves:
        fabric = replace(fabric_of(network), curves=with_all_ops(base.curves, case.backend))
        share = host_share(paths, fabric, message_bytes)
        if host_path(paths, *shape) is None:
            share = _share_of_line(fabric, case.backend, message_bytes)
        return CarriedFabric(fabric=fabric, basis="own", host_ratio=share)
    if host_path(paths, *shape) is not None:
        fabric = fabric_on(paths, network, *shape)
        fabric = replace(fabric, curves=with_all_ops(fabric.curves, case.backend))
        share = host_share(paths, fabric, message_bytes)
        return CarriedFabric(fabric=fabric, basis="host", host_ratio=share)
    fabric = _by_line(base, network, nodes)
    is_shaped = network.payload_rate_gbps is not None
    share = _share_of_line(fabric, case.backend, message_bytes)
    basis = "line" if is_shaped or base.summary.ceiling_gbps is not None else "unknown"
    return CarriedFabric(fabric=fabric, basis=basis, host_ratio=share)


def _from_found(base: RunCase, network: Network, nodes: int, *, is_own: bool) -> CarriedFabric:
    """The run's own collectives on a network that nobody shaped, as they are or at another rate.

    Raises InputError where its own rate is not known.
    """
    case, was = base.case, carried_byte_per_s(base)
    curves, message_bytes = with_all_ops(base.curves, case.backend), _usual_message_bytes(base)
    if is_own and curves:
        share = 1.0 if was is None else host_ratio_of(curves, case, was, message_bytes)
        fabric = replace(fabric_of(network), curves=curves)
        return CarriedFabric(fabric=fabric, basis="own", host_ratio=share)
    asked = was if network == case.network else asked_byte_per_s(network)
    if not curves or asked is None:
        return CarriedFabric(fabric=fabric_of(network), basis="unknown", host_ratio=1.0)
    if was is None:
        raise InputError(
            f"{case.label}: what its network carries at most is not known, so nobody can say what "
            "of its collectives the wire takes",
            hint="`nominal_gbps:` in the network's entry, or another case with --case",
        )
    asked = compared_byte_per_s(base, asked, was)
    curves = curves_at(curves, case, was, asked, nodes)
    share = host_ratio_of(curves, case, asked, message_bytes)
    fabric = replace(fabric_of(network), curves=curves)
    return CarriedFabric(fabric=fabric, basis="found", host_ratio=share)


def _usual_message_bytes(base: RunCase) -> float:
    """Of the collective that moves most: a bucket, or a unit."""
    model = base.workload.model
    if STRATEGIES[base.workload.strategy].is_sharded:
        return 4.0 * model.shape.block_parameters
    return min(4.0 * base.workload.trained_parameters, 25 * 2.0**20)


def _by_line(base: RunCase, network: Network, nodes: int) -> Fabric:
    """By the line's rate, and what a host like this carries at most."""
    case, summary = base.case, base.summary
    payload = network.payload_rate_gbps
    rate = None if payload is None else payload * network.num_nics * 1e9 / 8
    ceiling = HOST_BYTE_PER_S[case.backend]
    if summary.ceiling_gbps is not None:
        ceiling = min(ceiling, summary.ceiling_gbps.value * 1e9 / 8)
    round_trip_s = 2 * HOST_LATENCY_S
    if summary.round_trip_s is not None:
        round_trip_s = summary.round_trip_s.value
    link = CrossedLink(
        nodes=nodes,
        ranks_per_node=case.ranks_per_node,
        backend=case.backend,
        byte_per_s=rate,
        overlap=USUAL[case.backend],
        delay_s=network.delay_s,
    )
    curves = []
    for op in OPS:
        turns = (2 if op == "all_reduce" else 1) * (link.nodes * link.ranks_per_node - 1)
        sent = [sent_bytes(case.backend, op, nodes, case.ranks_per_node, size) for size in SIZES]
        times_s = tuple(turns * round_trip_s / 2 + each / ceiling for each in sent)
        host = CollectiveCurve(
            op=op,
            nodes=nodes,
            ranks_per_node=case.ranks_per_node,
            message_bytes=SIZES,
            time_s=times_s,
        )
        curves.append(link_curve(host, link))
    return replace(fabric_of(network), curves=tuple(curves))


def _share_of_line(fabric: Fabric, backend: Backend, message_bytes: float) -> float:
    """The host's part by what a host like this carries."""
    curve = next((each for each in fabric.curves if each.op == "all_reduce"), None)
    if curve is None:
        return 1.0
    shape = (curve.nodes, curve.ranks_per_node)
    sent = sent_bytes(backend, "all_reduce", *shape, message_bytes)
    host_s = sent / HOST_BYTE_PER_S[backend]
    return float(np.clip(host_s / time_at(curve, message_bytes), 0.0, 1.0))
