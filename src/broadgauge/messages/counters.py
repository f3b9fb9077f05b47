"""What is counted on a node, and what is known of its link?"""

from dataclasses import dataclass

from broadgauge.messages.vocabulary import CounterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class NicCounters:
    """Monotonic totals of one NIC, or of one port of an InfiniBand adapter."""

    name: str
    tx_bytes: int
    rx_bytes: int
    drops_count: int | None = None
    """None: the device does not say."""
    kind: CounterKind | None = None
    """None: not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCounters:
    """Monotonic totals of one node since it was made. Link figures are None on one node."""

    tx_bytes: int | None
    rx_bytes: int | None
    drops_count: int | None
    """These three are sums over `nics`, of an emulated node."""
    retransmits_count: int | None
    cores_count: int
    cpu_user_s: float | None
    cpu_system_s: float | None
    cpu_softirq_s: float | None
    """None: /proc/stat does not show the node's cores, as where lxcfs renumbers them."""
    cpu_stolen_s: float | None = None
    """What the hypervisor gave to other machines while the cores had work; None: not read."""
    ranks_cpu_s: float | None = None
    """User and system seconds of the ranks that run on these cores, those of other nodes that
    share them too, and of the children they started and waited for. None: not known."""
    nics: tuple[NicCounters, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """What can be carried between two nodes, whatever the shaped rate."""

    ceiling_gbps: float
    """What one plain TCP stream carried at least over the same link unshaped, with its MTU and
    offload, on the wire."""
    eight_streams_gbps: float | None = None
    """Eight at once, over all NICs of a node together; None: unknown, or not needed."""
    is_one_stream_enough: bool = False
    """It carries twice the line rate or more: eight were not asked, as nothing rests on them."""
    round_trip_s: float | None = None
    """Median of 1-byte ping-pongs over the link as shaped."""
    burst_bytes: int | None = None
    """What passes at once after a pause: shorter messages see no shaping. None: unshaped."""
    congestion_control: str | None = None
    """TCP's, in the nodes: `cubic`."""
