"""What has crossed an interface that we did not make?

What left is read from its queue where that counts, which misses nothing; what came, and what left
where it has no such queue, from the interface itself, which on virtual NICs counts the headers of
a segmented packet once only.
"""

from dataclasses import replace
from pathlib import Path

from broadgauge.agent.counters.queues import read_root_queue
from broadgauge.agent.emulated.sysctls import tcp_retransmits
from broadgauge.messages.counters import NicCounters, NodeCounters
from broadgauge.messages.vocabulary import CounterKind

_NET = Path("/sys/class/net")


def with_interfaces(counters: NodeCounters, interfaces: tuple[str, ...]) -> NodeCounters:
    """The node's counters with these interfaces', and their sums. Loopback alone counts nothing."""
    found = tuple(read_interface(name) for name in interfaces if name != "lo")
    if not found:
        return counters
    return replace(
        counters,
        tx_bytes=sum(each.tx_bytes for each in found),
        rx_bytes=sum(each.rx_bytes for each in found),
        drops_count=sum(each.drops_count or 0 for each in found),
        retransmits_count=tcp_retransmits(),
        nics=(*found, *counters.nics),
    )


def read_interface(name: str) -> NicCounters:
    """Raises OSError where there is no such interface."""
    queue = read_root_queue(name)
    drops = _statistic(name, "tx_dropped") + _statistic(name, "rx_dropped")
    return NicCounters(
        name=name,
        tx_bytes=_statistic(name, "tx_bytes") if queue is None else queue.sent_bytes,
        rx_bytes=_statistic(name, "rx_bytes"),
        drops_count=drops + (0 if queue is None else queue.drops_count),
        # What came is the interface's own count, below what its sender's queue says of the same.
        kind=CounterKind.INTERFACE if queue is None else CounterKind.QUEUE,
    )


def _statistic(interface: str, name: str) -> int:
    return int((_NET / interface / "statistics" / name).read_text())
