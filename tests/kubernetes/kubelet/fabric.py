"""How are the nodes' networks built? Of namespaces, bridges and shaped veth pairs.

```
pod eth0 ─ eth0 of the node (a bridge) ─ uplink: HTB ─ port: HTB ─ bridge of the pod network
pod net1 ═ ens13 of the node: HTB (moved into the pod) ─ port: HTB, source filter ─ bridge
```

All of it runs in one thread, whose network namespace changes; no namespace has a name, so all
vanish with the process.
"""

import ipaddress
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.kubernetes.kubelet.config import Fabric
from tests.kubernetes.kubelet.source_filter import add_sink, allow_only, dropped_packets

from broadgauge.agent.emulated.links import ShapedInterface
from broadgauge.agent.emulated.shaping import LinkPlan, receiving_plan, sending_plan
from broadgauge.agent.emulated.syscalls import CloneFlag, setns, unshare
from broadgauge.agent.emulated.sysctls import (
    CLUSTER_SETTINGS,
    NODE_SETTINGS,
    apply_settings,
    choose_congestion_control,
    keep_packets_in_order,
)

T = TypeVar("T")
POD_SUBNET = ipaddress.IPv4Network("10.88.0.0/16")
DNS_ADDRESS = "10.88.255.254"
"""Of the pod network's bridge: cluster DNS, and every pod's gateway, which leads nowhere."""


@dataclass(kw_only=True)
class Namespace:
    """A network namespace and a netlink socket in it."""

    fd: int
    netlink: Any

    def index(self, name: str) -> int:
        found = self.netlink.link_lookup(ifname=name)
        if not found:
            raise LookupError(f"no interface {name}")
        return int(found[0])

    def close(self) -> None:
        self.netlink.close()
        os.close(self.fd)


@dataclass(kw_only=True)
class Link:
    """A device of a node and its port at the fabric's bridge."""

    fabric: Fabric
    device: str
    place: Namespace
    """Where the device is now: its node, or a pod."""
    current: str
    """What it is called there."""
    sending: ShapedInterface
    receiving: ShapedInterface
    address: str | None
    """Given by the fabric, with its prefix."""
    sink: int | None
    pci_address: str
    holder: str | None = None
    """UID of the pod that has it."""


@dataclass(kw_only=True)
class NodeNetwork:
    """A node's namespace and what is in it."""

    name: str
    number: int
    place: Namespace
    uplink: Link
    links: dict[str, Link] = field(default_factory=dict)
    """By the device's name in the node."""
    num_pods: int = 0
    free_hosts: list[int] = field(default_factory=lambda: list(range(250, 1, -1)))


class FabricBuilder:
    """The fabrics' bridges in a namespace of theirs, and the thread that builds."""

    def __init__(self, pod_network: Fabric, fabrics: list[Fabric]) -> None:
        self.pod_network, self.fabrics = pod_network, fabrics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="network")
        self.home = self.call(self._build)

    def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do it in the network thread."""
        return self._thread.submit(work, *arguments).result()

    def new_namespace(self) -> Namespace:
        """A namespace with lo up and TCP's settings; the thread comes back to the fabric's."""
        from pyroute2 import IPRoute

        unshare(CloneFlag.NEWNET)
        apply_settings(NODE_SETTINGS)
        keep_packets_in_order(tuple(os.sched_getaffinity(0)))
        choose_congestion_control()
        place = Namespace(
            fd=os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC), netlink=IPRoute()
        )
        place.netlink.link("set", index=1, state="up")
        if hasattr(self, "home"):
            setns(self.home.fd, CloneFlag.NEWNET)
        return place

    def _build(self) -> Namespace:
        home = self.new_namespace()
        apply_settings(CLUSTER_SETTINGS)
        for number, fabric in enumerate([self.pod_network, *self.fabrics]):
            add_bridge(home, f"f{number}", fabric.mtu_bytes)
        home.netlink.addr("add", index=home.index("f0"), address=DNS_ADDRESS, prefixlen=16)
        return home

    def add_node(self, name: str, number: int) -> NodeNetwork:
        """Build a node's namespace and its devices. In the network thread."""
        place = self.new_namespace()
        add_bridge(place, "eth0", self.pod_network.mtu_bytes)
        uplink = self._cable(place, self.pod_network, (0, number, 0), "uplink")
        set_link(place, "uplink", master=place.index("eth0"), state="up")
        address = str(POD_SUBNET.network_address + (number << 8) + 1)
        place.netlink.addr("add", index=place.index("eth0"), address=address, prefixlen=16)
        node = NodeNetwork(name=name, number=number, place=place, uplink=uplink)
        for rail, fabric in enumerate(self.fabrics, start=1):
            if fabric.nodes is not None and name not in fabric.nodes:
                continue
            for which in range(fabric.num_vfs + 1):
                device = fabric.device if which == 0 else f"{fabric.device}v{which - 1}"
                link = self._cable(place, fabric, (rail, number, which), device)
                if which == 0 and name in fabric.addresses:
                    self._give_address(link, fabric.addresses[name])
                set_link(place, device, state="up")
                node.links[device] = link
        return node

    def _cable(
        self, place: Namespace, fabric: Fabric, numbers: tuple[int, int, int], device: str
    ) -> Link:
        """A veth pair between a node and a fabric's bridge, shaped in both directions."""
        rail, number, which = numbers
        port = f"f{rail}n{number}v{which}"
        peer = {"ifname": device, "net_ns_fd": place.fd}
        self.home.netlink.link("add", ifname=port, kind="veth", peer=peer)
        link = Link(
            fabric=fabric,
            device=device,
            place=place,
            current=device,
            sending=ShapedInterface(netlink=place.netlink, index=place.index(device)),
            receiving=ShapedInterface(netlink=self.home.netlink, index=self.home.index(port)),
            address=None,
            sink=None,
            pci_address=f"0000:{0x17 + 0x20 * rail:02x}:{which >> 3:02x}.{which & 7}",
        )
        self.shape(link, fabric)
        set_link(self.home, port, master=self.home.index(f"f{rail}"), state="up")
        return link

    def _give_address(self, link: Link, address: str) -> None:
        link.address = address
        add_address(link.place, link.current, address)
        if link.fabric.only_given_addresses:
            link.sink = add_sink(self.home.netlink, f"d{link.receiving.index}")
            allow_only(self.home.netlink, link.receiving.index, link.sink, address)

    def shape(self, link: Link, fabric: Fabric) -> None:
        """Give a link the fabric's rate and MTU."""
        plan = LinkPlan(rate_gbps=fabric.rate_gbps, mtu=fabric.mtu_bytes)
        was_shaped = link.receiving.plan is not None and link.receiving.plan.htb is not None
        link.sending.apply(sending_plan(plan, {}, 1))
        if link.sink is not None and was_shaped and fabric.rate_gbps is None:
            self.home.netlink.tc("del", "clsact", link.receiving.index)  # makes room for its own
        link.receiving.apply(receiving_plan(plan))
        if link.sink is not None and was_shaped != (fabric.rate_gbps is not None):
            assert link.address is not None
            allow_only(self.home.netlink, link.receiving.index, link.sink, link.address)
        link.fabric = fabric

    def move(self, link: Link, to: Namespace, name: str) -> None:
        """Move a device to a pod or back; the kernel takes its queues and addresses away."""
        index = link.place.index(link.current)
        set_link(link.place, link.current, state="down")
        link.sending.read()
        link.place.netlink.link("set", index=index, ifname=name, net_ns_fd=to.fd)
        link.place, link.current = to, name
        meter = link.sending.meter
        meter.restart()
        link.sending = ShapedInterface(netlink=to.netlink, index=to.index(name), meter=meter)
        link.sending.apply(sending_plan(link_plan(link.fabric), {}, 1))
        set_link(to, name, state="up")

    def counters(self, link: Link) -> dict[str, int]:
        """What has crossed a link since it was made."""
        sent, received = link.sending.read()[0], link.receiving.read()[0]
        dropped = 0 if link.sink is None else dropped_packets(self.home.netlink, link.sink)
        return {
            "tx_bytes": sent.num_bytes,
            "rx_bytes": received.num_bytes,
            "tx_packets": sent.num_packets,
            "rx_packets": received.num_packets,
            "tx_drops": sent.num_drops,
            "rx_drops": received.num_drops,
            "dropped_packets": dropped,
        }


def link_plan(fabric: Fabric) -> LinkPlan:
    return LinkPlan(rate_gbps=fabric.rate_gbps, mtu=fabric.mtu_bytes)


def add_bridge(place: Namespace, name: str, mtu_bytes: int) -> None:
    place.netlink.link(
        "add", ifname=name, kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0
    )
    set_link(place, name, mtu=mtu_bytes, state="up")


def set_link(place: Namespace, name: str, **what: Any) -> None:
    place.netlink.link("set", index=place.index(name), **what)


def add_address(place: Namespace, name: str, address: str) -> None:
    text, _, prefix = address.partition("/")
    place.netlink.addr("add", index=place.index(name), address=text, prefixlen=int(prefix))
