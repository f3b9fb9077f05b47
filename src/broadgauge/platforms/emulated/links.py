"""How is a living link given its rate, and what has crossed it?

A link has two ends, each an interface whose egress is shaped: the node's own, and the bridge's
port towards the node.
"""

from dataclasses import dataclass, field
from typing import Any

from broadgauge.platforms.emulated import traffic_control
from broadgauge.platforms.emulated.errors import building
from broadgauge.platforms.emulated.shaping import (
    HINT_COUNTER,
    HINT_SHAPING,
    HOST_FIFO_BYTES,
    LinkCounters,
    LinkPlan,
    Meter,
    Totals,
    gso_max_bytes,
    htb_rate,
    switch_buffer_bytes,
)


@dataclass(slots=True, kw_only=True)
class ShapedInterface:
    """One end of a link: an interface of this machine and the netlink socket of its namespace."""

    netlink: Any
    index: int
    is_port_of_switch: bool
    """True where the queue stands for the switch's buffer, False for the host's own."""
    is_shaped: bool | None = None
    """None until the first `apply`."""
    meter: Meter = field(default_factory=Meter)

    def apply(self, link: LinkPlan) -> None:
        """Give the interface this rate and MTU; the totals go on.

        From one rate to another everything happens in place. Between shaped and unshaped the
        qdisc is replaced: do it while the link is idle, as what waits in the queue is dropped.
        """
        self._set_sizes(link)
        if link.rate_gbps is None:
            if self.is_shaped is not False:
                self._begin_unshaped()
        elif self.is_shaped:
            self._change_rate(link.rate_gbps)
        else:
            self._begin_shaped(link.rate_gbps)

    def read(self) -> tuple[Totals, int]:
        """What has left through this interface in all, and how many bytes wait now?"""
        handle = traffic_control.HTB_HANDLE if self.is_shaped else traffic_control.CLSACT_HANDLE
        with building(f"read the counters of interface {self.index}", HINT_SHAPING):
            now = traffic_control.read_statistics(self.netlink, self.index, handle)
        return self.meter.update(now), now.backlog_bytes

    def _begin_shaped(self, rate_gbps: float) -> None:
        was_unshaped = self.is_shaped is False
        if was_unshaped:
            self.read()
        with building(f"add HTB to interface {self.index}", HINT_SHAPING):
            fifo_bytes = self._fifo_bytes(rate_gbps)
            traffic_control.add_htb(self.netlink, self.index, htb_rate(rate_gbps), fifo_bytes)
            if was_unshaped:
                traffic_control.delete_counter(self.netlink, self.index)
        self.is_shaped = True
        self.meter.restart()

    def _begin_unshaped(self) -> None:
        was_shaped = self.is_shaped is True
        if was_shaped:
            self.read()
        with building(f"add a counter to interface {self.index}", HINT_COUNTER):
            traffic_control.add_counter(self.netlink, self.index)
            if was_shaped:
                traffic_control.delete_htb(self.netlink, self.index)
        self.is_shaped = False
        self.meter.restart()

    def _change_rate(self, rate_gbps: float) -> None:
        with building(f"change HTB of interface {self.index}", HINT_SHAPING):
            traffic_control.set_htb_rate(self.netlink, self.index, htb_rate(rate_gbps))
            traffic_control.set_fifo_limit(self.netlink, self.index, self._fifo_bytes(rate_gbps))

    def _fifo_bytes(self, rate_gbps: float) -> int:
        return switch_buffer_bytes(rate_gbps) if self.is_port_of_switch else HOST_FIFO_BYTES

    def _set_sizes(self, link: LinkPlan) -> None:
        with building(f"set MTU {link.mtu} of interface {self.index}", "veth takes 68 to 65535"):
            self.netlink.link(
                "set", index=self.index, mtu=link.mtu, gso_max_size=gso_max_bytes(link)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One network interface of a node, with both directions of its link."""

    interface: str
    address: str
    egress: ShapedInterface
    ingress: ShapedInterface

    def shape(self, link: LinkPlan) -> None:
        """Give the link this rate and MTU. Open connections keep the segment size they agreed."""
        self.egress.apply(link)
        self.ingress.apply(link)


def read_counters(nics: tuple[Nic, ...], tcp_retransmits: int) -> LinkCounters:
    """What has crossed these interfaces of one node, summed?"""
    sent = [nic.egress.read() for nic in nics]
    received = [nic.ingress.read() for nic in nics]
    return LinkCounters(
        tx_bytes=sum(totals.num_bytes for totals, _ in sent),
        rx_bytes=sum(totals.num_bytes for totals, _ in received),
        tx_packets=sum(totals.num_packets for totals, _ in sent),
        rx_packets=sum(totals.num_packets for totals, _ in received),
        tx_drops=sum(totals.num_drops for totals, _ in sent),
        rx_drops=sum(totals.num_drops for totals, _ in received),
        overlimits=sum(totals.num_overlimits for totals, _ in sent + received),
        backlog_bytes=sum(backlog for _, backlog in sent + received),
        tcp_retransmits=tcp_retransmits,
    )
