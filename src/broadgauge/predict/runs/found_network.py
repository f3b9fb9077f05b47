"""What would another rate make of collectives on a network that nobody can set?

The run's own collectives there take the wire's time and the host's: their bytes at the network's
nominal rate, or at what plain TCP streams carried where none is stated, and the rest. That rest
comes again at any rate; both are added, as nothing says what of one the other hides, so a slower
rate is never faster and a faster one never slower, but for the microsecond of `LEAST_HOST_S`. Where
the run carried more than is stated, a rate between the two is taken for what it carried.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from broadgauge.predict.case import CollectiveCurve
from broadgauge.predict.costs.curves import rising, time_at
from broadgauge.predict.facts.arrays import ROUNDING_RATIO
from broadgauge.predict.runs.cases import RunCase
from broadgauge.predict.system.curves import CrossedLink, link_curve
from broadgauge.predict.system.host_overlap import HostOverlap
from broadgauge.predict.system.paths import sent_bytes
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import AnyNetwork, Network

ADDED = HostOverlap(sharpness=1.0)
"""Host and wire one after the other."""
LEAST_HOST_S = 1e-6
"""Of a collective: what is left where its bytes fill the wire."""


def is_on_found(case: Case) -> bool:
    """Does it run on a network of hosts or pods, which nobody shapes?"""
    return case.link is not None and case.link.face is not None


def found_byte_per_s(base: RunCase) -> float | None:
    """Out of a node, over the network that the run found: nominal, else what streams carried."""
    link = base.case.link
    nominal = None if link is None else link.nominal_node_gbps
    streams = (base.summary.ceiling_gbps, base.summary.eight_streams_gbps)
    carried = max((each.value for each in streams if each is not None), default=None)
    return _byte_per_s(carried if nominal is None else nominal)


def carried_byte_per_s(base: RunCase) -> float | None:
    """Out of a node: what is stated or streams carried, or more where the run's own collectives
    show it. What disturbs them makes them longer, so the network has at least that."""
    stated = found_byte_per_s(base)
    if stated is None:
        return None
    return max([stated, *_shown_byte_per_s(base)])


def _byte_per_s(gbps: float | None) -> float | None:
    return None if gbps is None else gbps * 1e9 / 8


def _shown_byte_per_s(base: RunCase) -> Iterator[float]:
    """Bytes out of a node over the time of each of the run's own collectives."""
    for curve in base.curves:
        shape = (base.case.backend, curve.op, curve.nodes, curve.ranks_per_node)
        for size, time_s in zip(curve.message_bytes, curve.time_s, strict=True):
            if time_s > 0:
                yield sent_bytes(*shape, size) / time_s


def compared_byte_per_s(base: RunCase, asked: float, carried: float) -> float:
    """The asked rate beside what the run carried: at least that, if it is not below the rate that
    the run's own network is stated to have."""
    stated = found_byte_per_s(base)
    if stated is None or asked < stated * (1 - ROUNDING_RATIO):
        return asked
    return max(asked, carried)


def asked_byte_per_s(network: Network) -> float | None:
    """Out of a node, over a network that is asked for."""
    payload = network.payload_rate_gbps
    if payload is None:
        return _byte_per_s(network.nominal_node_gbps)
    return _byte_per_s(payload * network.num_nics)


def is_answerable(base: RunCase, network: AnyNetwork | None) -> bool:
    """Can it be said what this network would give a run on a found one: are both rates known?"""
    if not is_on_found(base.case):
        return True
    known = isinstance(network, Network) and asked_byte_per_s(network) is not None
    return known and bool(base.curves) and found_byte_per_s(base) is not None


def curves_at(
    curves: Iterable[CollectiveCurve],
    case: Case,
    was_byte_per_s: float,
    byte_per_s: float,
    nodes: int,
) -> tuple[CollectiveCurve, ...]:
    """A run's own collectives as they would be at another rate, among so many nodes."""
    link = CrossedLink(
        nodes=nodes,
        ranks_per_node=case.ranks_per_node,
        backend=case.backend,
        byte_per_s=byte_per_s,
        overlap=ADDED,
        delay_s=0.0,
    )
    return tuple(link_curve(_of_host(curve, case, was_byte_per_s), link) for curve in curves)


def host_ratio_of(
    curves: tuple[CollectiveCurve, ...], case: Case, byte_per_s: float, message_bytes: float
) -> float:
    """Share of an all_reduce's time that is not the wire's, 0 to 1."""
    curve = next((each for each in curves if each.op == "all_reduce"), None)
    if curve is None or not any(curve.time_s):
        return 1.0
    shape = (curve.nodes, curve.ranks_per_node)
    wire_s = sent_bytes(case.backend, "all_reduce", *shape, message_bytes) / byte_per_s
    return float(np.clip(1 - wire_s / time_at(curve, message_bytes), 0.0, 1.0))


def _of_host(curve: CollectiveCurve, case: Case, byte_per_s: float) -> CollectiveCurve:
    """What is left without the wire's time."""
    shape = (case.backend, curve.op, curve.nodes, curve.ranks_per_node)
    left_s = [
        max(LEAST_HOST_S, time_s - sent_bytes(*shape, size) / byte_per_s)
        for size, time_s in zip(curve.message_bytes, curve.time_s, strict=True)
    ]
    return replace(curve, time_s=rising(left_s))
