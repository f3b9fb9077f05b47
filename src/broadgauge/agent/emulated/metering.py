"""What has crossed an emulated link, in totals that never fall?"""

from dataclasses import dataclass

from broadgauge.agent.emulated.traffic_control import QdiscStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What an interface has sent since it was made, over all its qdiscs."""

    num_bytes: int = 0
    num_packets: int = 0
    num_drops: int = 0
    num_overlimits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NicTotals:
    """One NIC's part of what has crossed a node's links."""

    device: str
    sent: Totals
    received: Totals


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
    """Segments that TCP in this node retransmitted (RetransSegs of /proc/net/snmp)."""
    nics: tuple[NicTotals, ...]
    """What the sums are of."""


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
