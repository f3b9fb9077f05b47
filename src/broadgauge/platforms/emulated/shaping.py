"""What rate and MTU does an emulated link have, and what has crossed it?

Both directions are shaped by HTB: the node's egress, and the bridge's egress to the node. An
unshaped link has no queue, only a counter. Measured on 16 cores, kernel 6.18, MTU 1500, in Gbit/s
for 1, 4 and 16 streams: no qdisc 78, 300, 490; the counter 74, 302, 450; HTB at a rate no machine
reaches 71, 191, 292, with three million segments sent again because its one lock reorders them.
"""

from dataclasses import dataclass

from broadgauge.platforms.emulated.traffic_control import HtbRate, QdiscStatistics

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
_QUANTUM_BYTES = 1 << 17

HINT_COUNTER = (
    "unshaped links are counted by clsact with a u32 filter: `modprobe -a sch_ingress cls_u32` as "
    "root (Fedora, RHEL: package kernel-modules-extra)"
)
HINT_SHAPING = (
    "HTB needs the kernel module sch_htb: `modprobe sch_htb` as root "
    "(Fedora, RHEL: package kernel-modules-extra)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlan:
    """What a link is to carry."""

    rate_gbps: float | None
    """Line rate of each direction, 10^9 bit/s with Ethernet headers; None leaves it unshaped."""
    mtu: int

    def __post_init__(self) -> None:
        if self.rate_gbps is not None and not 0.001 <= self.rate_gbps <= MAX_RATE_GBPS:
            raise ValueError(
                f"rate_gbps is {self.rate_gbps}; hint: 0.001 to {MAX_RATE_GBPS:g}, or None"
            )
        if not 576 <= self.mtu <= 65_000:
            raise ValueError(f"mtu is {self.mtu}; hint: 576 to 65000, mostly 1500 or 9000")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCounters:
    """What has crossed a node's links since they were made: totals that never fall.

    Bytes include the Ethernet header of every segment on the wire, as the qdisc counts them.
    """

    tx_bytes: int
    rx_bytes: int
    tx_packets: int
    rx_packets: int
    tx_drops: int
    rx_drops: int
    overlimits: int
    """How often HTB, of either direction, had to make a packet wait."""
    backlog_bytes: int
    """Waiting now in either direction; a gauge, not a total."""
    tcp_retransmits: int
    """Segments that TCP in this node sent again (RetransSegs of /proc/net/snmp)."""


def burst_bytes(rate_gbps: float) -> int:
    """How many bytes may leave at once after a pause? Messages below this see no shaping.

    The bucket must hold what the line carries while HTB's timer is late.
    """
    return max(2 * 1514, round(rate_gbps * 1e9 / 8 * BURST_S))


def gso_max_bytes(link: LinkPlan) -> int:
    """How large may a packet of segmentation offload be? 200 µs of line rate, 64 KiB at most.

    A token bucket lets a whole packet go at once; on a slow line 64 KiB are milliseconds.
    """
    if link.rate_gbps is None:
        return GSO_MAX_BYTES
    wanted = round(link.rate_gbps * 1e9 / 8 * GSO_S)
    return min(GSO_MAX_BYTES, max(wanted, 2 * link.mtu + _GSO_HEADROOM_BYTES))


def switch_buffer_bytes(rate_gbps: float) -> int:
    """How many bytes may wait in front of a node before they are dropped? 10 ms, 1 MiB at least."""
    return max(_MIN_FIFO_BYTES, round(rate_gbps * 1e9 / 8 * SWITCH_BUFFER_S))


def htb_rate(rate_gbps: float) -> HtbRate:
    """Which HTB class makes this line rate?"""
    return HtbRate(
        bytes_per_s=round(rate_gbps * 1e9 / 8),
        burst_bytes=burst_bytes(rate_gbps),
        quantum_bytes=_QUANTUM_BYTES,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What an interface has sent since it was made, over all its qdiscs."""

    num_bytes: int = 0
    num_packets: int = 0
    num_drops: int = 0
    num_overlimits: int = 0


_NOTHING = QdiscStatistics(
    num_bytes=0, num_packets=0, num_drops=0, num_overlimits=0, backlog_bytes=0
)


@dataclass(slots=True, kw_only=True)
class Meter:
    """Which totals do the kernel's counters make when they wrap or their qdisc is replaced?

    It must be read at least once per wrap: 2^32 segments, 17 minutes at 50 Gbit/s and MTU 1500.
    """

    totals: Totals = Totals()
    last: QdiscStatistics = _NOTHING

    def update(self, now: QdiscStatistics) -> Totals:
        """What in all, given the counters of the present qdisc as they are now?"""
        last, totals = self.last, self.totals
        self.totals = Totals(
            num_bytes=totals.num_bytes + (now.num_bytes - last.num_bytes) % 2**64,
            num_packets=totals.num_packets + (now.num_packets - last.num_packets) % 2**32,
            num_drops=totals.num_drops + (now.num_drops - last.num_drops) % 2**32,
            num_overlimits=totals.num_overlimits
            + (now.num_overlimits - last.num_overlimits) % 2**32,
        )
        self.last = now
        return self.totals

    def restart(self) -> None:
        """A new qdisc counts from nothing."""
        self.last = _NOTHING
