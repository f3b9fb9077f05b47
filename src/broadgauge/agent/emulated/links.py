"""How is a living link given its rate, and what has crossed it?

A link has two ends, each an interface whose egress is shaped: the node's own, and the bridge's
port towards the node.
"""

from dataclasses import dataclass, field
from typing import Any

from broadgauge.agent.emulated import traffic_control
from broadgauge.agent.emulated.ability_fixes import FILTER_FIX, NETEM_FIX
from broadgauge.agent.emulated.addresses import device_name, nic_address, rank_address
from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.metering import LinkCounters, Meter, NicTotals, Totals
from broadgauge.agent.emulated.overlay import Tunnel
from broadgauge.agent.emulated.shaping import (
    HINT_COUNTER,
    HINT_SHAPING,
    EgressPlan,
    LinkPlan,
    receiving_plan,
    sending_plan,
)
from broadgauge.agent.emulated.traffic_control import HtbTree


@dataclass(slots=True, kw_only=True)
class ShapedInterface:
    """One end of a link: an interface of this machine and the netlink socket of its namespace."""

    netlink: Any
    index: int
    plan: EgressPlan | None = None
    """As it is now; None until the first `apply`."""
    meter: Meter = field(default_factory=Meter)

    def apply(self, plan: EgressPlan) -> None:
        """Make the interface do this; the totals go on.

        Rates, delays and losses change in place. Where classes come or go, or all of the shaping,
        the qdisc is replaced: do it while the link is idle, as what waits in the queue is dropped.
        """
        self._set_sizes(plan)
        before, after = self._htb, plan.htb
        if self.plan is None or (before is None) != (after is None):
            self._exchange(after)
        elif before is not None and after is not None:
            if before.structure == after.structure:
                self._change(after)
            else:
                self._rebuild(after)
        self.plan = plan

    def read(self) -> tuple[Totals, int]:
        """What has left through this interface in all, and how many bytes wait now?"""
        handle = traffic_control.CLSACT_HANDLE if self._htb is None else traffic_control.HTB_HANDLE
        with building(f"read the counters of interface {self.index}", HINT_SHAPING):
            now = traffic_control.read_statistics(self.netlink, self.index, handle)
        return self.meter.update(now), now.backlog_bytes

    @property
    def _htb(self) -> HtbTree | None:
        return None if self.plan is None else self.plan.htb

    def _exchange(self, tree: HtbTree | None) -> None:
        """From shaped to a counter or back, or from nothing: the new one first, so that no packet
        goes uncounted."""
        is_first = self.plan is None
        if not is_first:
            self.read()
        if tree is None:
            with building(f"add a counter to interface {self.index}", HINT_COUNTER):
                traffic_control.add_counter(self.netlink, self.index)
                if not is_first:
                    traffic_control.delete_htb(self.netlink, self.index)
        else:
            self._add(tree)
            if not is_first:
                with building(f"take the counter off interface {self.index}", HINT_COUNTER):
                    traffic_control.delete_counter(self.netlink, self.index)
        self.meter.restart()

    def _rebuild(self, tree: HtbTree) -> None:
        """Other classes or queues under the same root."""
        self.read()
        with building(f"take HTB off interface {self.index}", HINT_SHAPING):
            traffic_control.delete_htb(self.netlink, self.index)
        self._add(tree)
        self.meter.restart()

    def _add(self, tree: HtbTree) -> None:
        with building(f"add HTB to interface {self.index}", HINT_SHAPING):
            traffic_control.add_htb(self.netlink, self.index)
            traffic_control.set_classes(self.netlink, self.index, tree, is_new=True)
        self._set_queues(tree, is_new=True)
        with building(f"add u32 filters to interface {self.index}", FILTER_FIX):
            traffic_control.add_filters(self.netlink, self.index, tree)

    def _change(self, tree: HtbTree) -> None:
        with building(f"change HTB of interface {self.index}", HINT_SHAPING):
            traffic_control.set_classes(self.netlink, self.index, tree, is_new=False)
        self._set_queues(tree, is_new=False)

    def _set_queues(self, tree: HtbTree, *, is_new: bool) -> None:
        kind, hint = ("netem", NETEM_FIX) if tree.netem else ("a queue", HINT_SHAPING)
        with building(f"give HTB of interface {self.index} {kind}", hint):
            traffic_control.set_queues(self.netlink, self.index, tree, is_new=is_new)

    def _set_sizes(self, plan: EgressPlan) -> None:
        with building(f"set MTU {plan.mtu} of interface {self.index}", "veth takes 68 to 65535"):
            offload = (plan.gso_max_bytes, plan.gso_max_segments)
            traffic_control.set_sizes(self.netlink, self.index, plan.mtu, offload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One network interface of a node, with both directions of its link."""

    node_number: int
    number: int
    num_nodes: int
    egress: ShapedInterface
    ingress: ShapedInterface
    tunnel: Tunnel | None

    @property
    def device(self) -> str:
        """Its own name: what it carries is counted there, a tunnel's headers with it."""
        return device_name(self.number)

    @property
    def interface(self) -> str:
        """What ranks use: the tunnel where there is one."""
        return self.device if self.tunnel is None else self.tunnel.interface

    @property
    def address(self) -> str:
        """Of the interface that ranks use."""
        has_overlay = self.tunnel is not None
        return rank_address(self.node_number, self.number, has_overlay=has_overlay)

    def shape(self, link: LinkPlan) -> None:
        """Give the link what it is to carry. Open connections keep the segment size they agreed."""
        sending = sending_plan(link, self._slow_peers(link), self.num_nodes - 1)
        self.egress.apply(sending)
        self.ingress.apply(receiving_plan(link))
        if self.tunnel is not None:
            self.tunnel.apply(sending)

    def _slow_peers(self, link: LinkPlan) -> dict[str, float]:
        """Which peers are reached by a slow way, and with what part of the rate? The slowest of
        the ways named."""
        ratios: dict[str, float] = {}
        for way in link.slow_ways:
            first, second = way.nodes
            other = {first: second, second: first}.get(self.node_number)
            if other is not None and other < self.num_nodes:
                address = nic_address(other, self.number)
                ratios[address] = min(way.rate_ratio, ratios.get(address, 1.0))
        return ratios


def read_counters(nics: tuple[Nic, ...], tcp_retransmits: int) -> LinkCounters:
    """What has crossed these interfaces of one node, summed and each by itself?"""
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
        nics=tuple(
            NicTotals(device=nic.device, sent=out, received=into)
            for nic, (out, _), (into, _) in zip(nics, sent, received, strict=True)
        ),
    )
