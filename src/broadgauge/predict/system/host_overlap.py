"""How much of the host's own time for a collective is hidden behind the wire's?

    t = ((s · host)^p + (w · wire)^p)^(1/p) + e · min(host, w · wire)

NCCL pipelines: the longer of the two is what it takes, but where they are nearly as long each now
and then waits for the other (p = 8); and a host that feeds a shaped link is slower than one that
feeds an open one, by s. Gloo's ranks reduce one chunk while another is on its way: of the shorter a
part e is seen, whatever the rates (p = ∞), and its all_gather keeps the wire w times longer than
its bytes need. What of s, w and e a machine has, its shaped paths show.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from broadgauge.predict.case import CollectiveCurve
from broadgauge.predict.costs.curves import time_at
from broadgauge.predict.system.paths import Paths, path_curves, sent_bytes
from broadgauge.specs.case import Backend
from broadgauge.specs.machines.system import PathTimes
from broadgauge.specs.networks.network import payload_rate_gbps
from broadgauge.specs.workloads.collectives import CollectiveOp

LEAST_WIRE_RATIO, MOST_WIRE_RATIO = 1.1, 3.0
"""Less is the host's own work, more something that disturbed the measurement."""
USUAL_HOST_RATIO, HOST_RATIO_SD, MOST_HOST_RATIO = 1.25, 0.2, 2.0
"""How much slower a host is that feeds a shaped link. Source: docs/measurements.md, "What a shaped
link hides": 1.12 to 1.38 on two machines with H200s. More is something that disturbed it."""
TIME_SD = 0.02
"""Of a collective's time, relative."""
LONG_S = 3e-3
"""On the wire: 100 to 260 µs of each message pass a shaper at once (docs/architecture.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOverlap:
    """One collective's s, w, e and p."""

    sharpness: float
    unhidden_ratio: float = 0.0
    host_ratio: float = 1.0
    wire_ratio: float = 1.0

    def together_s(self, host_s: float, wire_s: float) -> float:
        """Seconds; neither bound is beaten, and less of either is never slower."""
        slowed_s, kept_s = self.host_ratio * host_s, self.wire_ratio * wire_s
        longer_s, shorter_s = max(slowed_s, kept_s), min(slowed_s, kept_s)
        if longer_s == 0:
            return 0.0
        share: float = (shorter_s / longer_s) ** self.sharpness
        both_s: float = longer_s * (1 + share) ** (1 / self.sharpness)
        return both_s + self.unhidden_ratio * min(host_s, kept_s)


USUAL: Mapping[Backend, HostOverlap] = {
    "nccl": HostOverlap(sharpness=8.0, host_ratio=USUAL_HOST_RATIO),
    "gloo": HostOverlap(sharpness=math.inf, unhidden_ratio=0.5),
}
"""Where no shaped path was measured. Source: docs/measurements.md: "What a shaped link hides" on
NCCL; Gloo filled 97 % of 1 Gbit/s that its host could have filled 15 times."""


def usual_overlap(seen: Collection[HostOverlap], backend: Backend) -> HostOverlap:
    """Of a collective that no shaped path showed: what the machine's others have."""
    if not seen:
        return USUAL[backend]
    return replace(
        USUAL[backend],
        unhidden_ratio=float(np.median([each.unhidden_ratio for each in seen])),
        host_ratio=float(np.median([each.host_ratio for each in seen])),
    )


def host_overlaps(paths: Paths, host: PathTimes) -> dict[CollectiveOp, HostOverlap]:
    """What the shaped paths show of each collective; without those that none shows."""
    found = {}
    for curve in path_curves(host):
        rows = sorted(_filling(paths, host, curve), key=lambda row: row.wire_s)
        if rows:
            usual = USUAL[host.backend]
            is_sharp = math.isinf(usual.sharpness)
            found[curve.op] = _unhidden(usual, rows) if is_sharp else _slowed(usual, rows)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filling:
    """One size on a shaped path."""

    time_s: float
    wire_s: float
    host_s: float


def _unhidden(usual: HostOverlap, rows: list[_Filling]) -> HostOverlap:
    """w by the largest sizes, half of the host's work taken off; e by all."""
    wires = [(row.time_s - row.host_s / 2) / row.wire_s for row in rows[-3:]]
    ratio = float(np.median(wires))
    ratio = 1.0 if ratio < LEAST_WIRE_RATIO else min(ratio, MOST_WIRE_RATIO)
    parts = [(row.time_s - ratio * row.wire_s) / row.host_s for row in rows]
    unhidden = float(np.clip(np.median(parts), 0.0, 1.0))
    return replace(usual, wire_ratio=ratio, unhidden_ratio=unhidden)


def _slowed(usual: HostOverlap, rows: list[_Filling]) -> HostOverlap:
    """s by the sizes' times, or the usual one where the wire hides the host too well to tell."""

    def loss(overlap: HostOverlap) -> float:
        misses = [
            math.log(overlap.together_s(row.host_s, row.wire_s) / row.time_s) / TIME_SD
            for row in rows
        ]
        away = (overlap.host_ratio - usual.host_ratio) / HOST_RATIO_SD
        return away**2 + sum(abs(miss) for miss in misses)

    ratios = np.linspace(1.0, MOST_HOST_RATIO, 101)
    return min((replace(usual, host_ratio=float(each)) for each in ratios), key=loss)


def _filling(paths: Paths, host: PathTimes, curve: CollectiveCurve) -> Iterator[_Filling]:
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
