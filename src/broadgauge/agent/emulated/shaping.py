"""What is an emulated link to carry, and which queues make it do so?

Both directions are shaped by HTB: the node's egress, and the bridge's egress to the node. Delay,
loss and slower ways to single nodes are the node's egress's. A link that is none of that has no
queue, only a counter. Measured on 16 cores, kernel 6.18, MTU 1500, in Gbit/s
for 1, 4 and 16 streams: no qdisc 78, 300, 490; the counter 74, 302, 450; HTB at a rate no machine
reaches 71, 191, 292, with three million segments retransmitted because its one lock reorders them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from broadgauge.agent.emulated.netem import Netem, limit_packets
from broadgauge.agent.emulated.traffic_control import HtbLeaf, HtbRate, HtbTree

MAX_RATE_GBPS = 10_000.0
BURST_S = 100e-6
"""How long HTB may oversleep without losing rate.

Measured: 100 and 250 µs both gave 99.8 to 100 % of the payload rate at 5, 10 and 25 Gbit/s.
"""
GSO_S = 200e-6
"""How long one packet of segmentation offload may last on the wire."""
GSO_MAX_BYTES = 65_536
_GSO_HEADROOM_BYTES = 512
"""What the kernel takes off gso_max_size for headers (MAX_TCP_HEADER), rounded up."""
SWITCH_BUFFER_S = 10e-3
"""Queue in front of a node, as in a data-centre switch: 12.5 MB at 10 Gbit/s."""
_MIN_FIFO_BYTES = 1 << 20
HOST_FIFO_BYTES = 64 << 20
"""Queue in front of a node's own NIC: TCP keeps it short by itself, so nothing need be dropped."""
GSO_MAX_SEGMENTS = 65_535
_LEAST_BYTES_PER_S = 1000
"""What a class is granted for certain where its sisters are granted all else."""

HINT_COUNTER = (
    "unshaped links are counted by clsact with a u32 filter: `modprobe -a sch_ingress cls_u32` as "
    "root (Fedora, RHEL: package kernel-modules-extra)"
)
HINT_SHAPING = (
    "HTB needs the kernel module sch_htb: `modprobe sch_htb` as root "
    "(Fedora, RHEL: package kernel-modules-extra)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowWay:
    """Two nodes that reach each other with a part of the link's rate only."""

    nodes: tuple[int, int]
    rate_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlan:
    """What every node's links are to carry."""

    rate_gbps: float | None
    """Line rate of each direction, 10^9 bit/s with Ethernet headers; None leaves it unshaped."""
    mtu: int
    """Of the link; a tunnel over it has less."""
    receive_rate_gbps: float | None = None
    """Towards the node, where it differs."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss_ratio: float = 0.0
    slow_ways: tuple[SlowWay, ...] = ()
    offload: tuple[int, int] | None = None
    """Bytes and segments that segmentation offload may keep together; None: what suits the rate."""

    def __post_init__(self) -> None:
        for name in ("rate_gbps", "receive_rate_gbps"):
            rate_gbps = getattr(self, name)
            if rate_gbps is not None and not 0.001 <= rate_gbps <= MAX_RATE_GBPS:
                raise ValueError(
                    f"{name} is {rate_gbps}; hint: 0.001 to {MAX_RATE_GBPS:g}, or None"
                )
        if not 576 <= self.mtu <= 65_000:
            raise ValueError(f"mtu is {self.mtu}; hint: 576 to 65000, mostly 1500 or 9000")
        if self.rate_gbps is None and (self.slow_ways or self.receive_rate_gbps is not None):
            raise ValueError("slow_ways and receive_rate_gbps need a rate_gbps; hint: give it")

    @property
    def needs_netem(self) -> bool:
        """Is any packet delayed or lost?"""
        return self.delay_s > 0 or self.loss_ratio > 0

    @property
    def slower_rate_gbps(self) -> float | None:
        """Of its two directions."""
        if self.rate_gbps is None or self.receive_rate_gbps is None:
            return self.rate_gbps
        return min(self.rate_gbps, self.receive_rate_gbps)


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPlan:
    """What one interface is to do with what leaves through it."""

    mtu: int
    gso_max_bytes: int
    gso_max_segments: int
    htb: HtbTree | None
    """None: a counter only."""


def burst_bytes(rate_gbps: float) -> int:
    """How many bytes may leave at once after a pause? Messages below this see no shaping.

    The bucket must hold what the line carries while HTB's timer is late.
    """
    return max(2 * 1514, round(rate_gbps * 1e9 / 8 * BURST_S))


def unshaped(link: LinkPlan) -> LinkPlan:
    """The same link with nothing held back: the MTU and the offload stay, which cost the host."""
    return LinkPlan(
        rate_gbps=None, mtu=link.mtu, offload=(gso_max_bytes(link), gso_max_segments(link))
    )


def gso_max_bytes(link: LinkPlan) -> int:
    """How large may a packet of segmentation offload be? 200 µs of line rate, 64 KiB at most.

    A token bucket lets a whole packet go at once; on a slow line 64 KiB are milliseconds.
    """
    if link.offload is not None:
        return link.offload[0]
    rate_gbps = link.slower_rate_gbps
    if rate_gbps is None:
        return GSO_MAX_BYTES
    wanted = round(rate_gbps * 1e9 / 8 * GSO_S)
    return min(GSO_MAX_BYTES, max(wanted, 2 * link.mtu + _GSO_HEADROOM_BYTES))


def gso_max_segments(link: LinkPlan) -> int:
    """How many segments may stay together? One where packets are lost: netem loses them whole."""
    if link.offload is not None:
        return link.offload[1]
    return 1 if link.loss_ratio > 0 else GSO_MAX_SEGMENTS


def switch_buffer_bytes(rate_gbps: float) -> int:
    """How many bytes may wait in front of a node before they are dropped? 10 ms, 1 MiB at least."""
    return max(_MIN_FIFO_BYTES, round(rate_gbps * 1e9 / 8 * SWITCH_BUFFER_S))


def htb_rate(rate_gbps: float, granted_gbps: float | None = None) -> HtbRate:
    """Which HTB class makes this line rate? `granted_gbps`: what its sisters must leave of it."""
    granted = rate_gbps if granted_gbps is None else granted_gbps
    return HtbRate(
        bytes_per_s=max(_LEAST_BYTES_PER_S, round(granted * 1e9 / 8)),
        burst_bytes=burst_bytes(granted),
        most_bytes_per_s=round(rate_gbps * 1e9 / 8),
        most_burst_bytes=burst_bytes(rate_gbps),
    )


def sending_plan(link: LinkPlan, slow_peers: Mapping[str, float], num_peers: int) -> EgressPlan:
    """What does a node's own interface do? `slow_peers` maps addresses to their `rate_ratio`.

    Where all peers are sent to at once each is sure of an equal share of the line, as senders of
    one queue are, but no slow one of more than its way carries.
    """
    if link.rate_gbps is None and not link.needs_netem:
        return _egress(link, None)
    rate_gbps = MAX_RATE_GBPS if link.rate_gbps is None else link.rate_gbps
    leaves = []
    left_gbps = rate_gbps
    for address, ratio in slow_peers.items():
        granted_gbps = rate_gbps * min(ratio, 1 / num_peers)
        left_gbps -= granted_gbps
        rate = htb_rate(rate_gbps * ratio, granted_gbps)
        leaves.append(HtbLeaf(rate=rate, destination=address))
    others = HtbLeaf(rate=htb_rate(rate_gbps, max(0.0, left_gbps)), destination=None)
    tree = HtbTree(
        rate=htb_rate(rate_gbps),
        leaves=(others, *leaves),
        fifo_bytes=HOST_FIFO_BYTES,
        netem=_netem(link, rate_gbps) if link.needs_netem else None,
    )
    return _egress(link, tree)


def receiving_plan(link: LinkPlan) -> EgressPlan:
    """What does the switch's port towards a node do?"""
    rate_gbps = link.receive_rate_gbps or link.rate_gbps
    if rate_gbps is None:
        return _egress(link, None)
    rate = htb_rate(rate_gbps)
    tree = HtbTree(
        rate=rate,
        leaves=(HtbLeaf(rate=rate, destination=None),),
        fifo_bytes=switch_buffer_bytes(rate_gbps),
        netem=None,
    )
    return _egress(link, tree)


def _netem(link: LinkPlan, rate_gbps: float) -> Netem:
    longest_s = link.delay_s + link.jitter_s
    return Netem(
        delay_s=link.delay_s,
        jitter_s=link.jitter_s,
        loss_ratio=link.loss_ratio,
        limit_packets=limit_packets(rate_gbps, longest_s, HOST_FIFO_BYTES),
    )


def _egress(link: LinkPlan, htb: HtbTree | None) -> EgressPlan:
    return EgressPlan(
        mtu=link.mtu,
        gso_max_bytes=gso_max_bytes(link),
        gso_max_segments=gso_max_segments(link),
        htb=htb,
    )
