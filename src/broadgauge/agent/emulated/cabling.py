"""How is a node's NIC made and joined to its switch? A veth pair, one end at a bridge.

Everything runs in PID 1 of the cluster, in one thread.
"""

from dataclasses import dataclass
from typing import Any

from broadgauge.agent.emulated.addresses import PREFIX_LENGTH, device_name, nic_address
from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.links import Nic, ShapedInterface
from broadgauge.agent.emulated.overlay import add_tunnel, bring_up
from broadgauge.agent.emulated.shaping import LinkPlan

HINT_VETH = (
    "veth and bridge must be in the kernel: `modprobe veth bridge` as root (Fedora, RHEL: package "
    "kernel-modules-core); on Ubuntu 23.10 and later an ordinary user also needs "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NicPlace:
    """Which NIC of which node, and what it is joined to."""

    node_number: int
    number: int
    num_nodes: int
    net_fd: int
    """The node's network namespace."""
    switch_index: int
    has_overlay: bool


def add_switch(netlink: Any, name: str) -> int:
    """Make a bridge that joins NICs; gives its interface index."""
    with building(f"make the bridge {name}", HINT_VETH):
        netlink.link(
            "add",
            ifname=name,
            kind="bridge",
            br_stp_state=0,
            br_forward_delay=0,
            br_mcast_snooping=0,
        )
        index: int = netlink.link_lookup(ifname=name)[0]
        netlink.link("set", index=index, state="up")
    return index


def add_nic(netlink: Any, inside: Any, place: NicPlace, link: LinkPlan) -> Nic:
    """Join node and bridge by a veth pair, shaped, addressed and up, with its tunnel if it has one.

    `netlink` is of the cluster's own network namespace, `inside` of the node's.
    """
    device, port = device_name(place.number), f"n{place.node_number}e{place.number}"
    numbers = (place.node_number, place.number)
    with building(f"make the veth pair {port}", HINT_VETH):
        netlink.link(
            "add", ifname=port, kind="veth", peer={"ifname": device, "net_ns_fd": place.net_fd}
        )
        port_index: int = netlink.link_lookup(ifname=port)[0]
        device_index: int = inside.link_lookup(ifname=device)[0]
    tunnel = add_tunnel(inside, device_index, numbers) if place.has_overlay else None
    nic = Nic(
        node_number=place.node_number,
        number=place.number,
        num_nodes=place.num_nodes,
        egress=ShapedInterface(netlink=inside, index=device_index),
        ingress=ShapedInterface(netlink=netlink, index=port_index),
        tunnel=tunnel,
    )
    nic.shape(link)
    address = nic_address(*numbers)
    with building(f"bring up {device} at {address}", HINT_VETH):
        netlink.link("set", index=port_index, master=place.switch_index, state="up")
        inside.addr("add", index=device_index, address=address, prefixlen=PREFIX_LENGTH)
        inside.link("set", index=device_index, state="up")
    if tunnel is not None:
        bring_up(tunnel, numbers, place.num_nodes)
    return nic
