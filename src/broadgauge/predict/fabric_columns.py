"""What do many cases say of their networks, as arrays?"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import get_args

import numpy as np
import numpy.typing as npt

from broadgauge.predict.case import TrainingCase, Transport
from broadgauge.predict.timeline import Times

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
    has_curves: bool
    """At least one case has."""


def fabric_columns(cases: Sequence[TrainingCase]) -> FabricColumns:
    """The fabrics of these cases."""
    fabrics = [case.fabric for case in cases]
    names = ("node_gbps", "measured_node_gbyte_per_s", "latency_s")
    table = np.array(list(map(attrgetter(*names), fabrics)), dtype=np.float64)
    nominal, measured, latency_s = table.reshape(-1, len(names)).T  # None reads as nan
    return FabricColumns(
        transport_index=np.array([_INDEX[fabric.transport] for fabric in fabrics], np.intp),
        node_gbps=nominal,
        measured_node_rate=measured * 1e9,
        latency_s=latency_s,
        has_curves=any(fabric.curves for fabric in fabrics),
    )
