"""What do many cases say of their networks, as arrays?"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import get_args

import numpy as np
import numpy.typing as npt

from broadgauge.predict.case import TrainingCase, Transport
from broadgauge.predict.facts.arrays import Times

TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
_INDEX = {transport: index for index, transport in enumerate(TRANSPORTS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricColumns:
    """One entry a case; NaN: not said."""

    transport_index: npt.NDArray[np.intp]
    """Into TRANSPORTS."""
    node_gbps: Times
    measured_node_rate: Times
    """byte/s."""
    latency_s: Times
    stated_node_rate: Times
    """byte/s, as the network's own entry says."""
    stated_ring_rate: Times
    """byte/s of one communicator; infinite: no limit of its own."""
    stated_spread_ratio: Times
    has_curves: bool
    """At least one case has."""


def fabric_columns(cases: Sequence[TrainingCase]) -> FabricColumns:
    """The fabrics of these cases."""
    fabrics = [case.fabric for case in cases]
    names = (
        *("node_gbps", "measured_node_gbyte_per_s", "latency_s", "stated_node_gbyte_per_s"),
        *("stated_ring_gbyte_per_s", "stated_spread_ratio"),
    )
    table = np.array(list(map(attrgetter(*names), fabrics)), dtype=np.float64)
    columns = table.reshape(-1, len(names)).T  # None reads as nan
    nominal, measured, latency_s, stated, ring, spread_ratio = columns
    return FabricColumns(
        transport_index=np.array([_INDEX[fabric.transport] for fabric in fabrics], np.intp),
        node_gbps=nominal,
        measured_node_rate=measured * 1e9,
        latency_s=latency_s,
        stated_node_rate=stated * 1e9,
        stated_ring_rate=np.where(np.isnan(ring), np.inf, ring * 1e9),
        stated_spread_ratio=spread_ratio,
        has_curves=any(fabric.curves for fabric in fabrics),
    )
