"""How is a pod-like network laid over an emulated link? A VXLAN device (RFC 7348) on each NIC.

Where each node's tunnel ends is known, so nothing is learned and nothing is flooded: every peer
has a static entry of the forwarding table and one of the neighbour table, as an overlay's control
plane writes them.
"""

from dataclasses import dataclass
from typing import Any

from broadgauge.agent.emulated.ability_fixes import VXLAN_FIX
from broadgauge.agent.emulated.addresses import (
    PREFIX_LENGTH,
    interface_name,
    nic_address,
    overlay_address,
    overlay_hardware_address,
)
from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.shaping import EgressPlan
from broadgauge.agent.emulated.traffic_control import set_sizes

HEADER_BYTES = 50
"""Of every packet: outer Ethernet 14, IPv4 20, UDP 8, VXLAN 8 (RFC 7348, section 5). That of
specs/networks/network.py, which a test holds; here without pydantic, for a quick start of the
probe."""

PORT = 4789
"""IANA's for VXLAN (RFC 7348, section 5)."""
_FIRST_IDENTIFIER = 80
_SET_DONT_FRAGMENT = 1
"""VXLAN_DF_SET of linux/if_link.h: a packet that does not fit is an error, not two packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """The device that the ranks of a node use instead of the NIC."""

    netlink: Any
    index: int
    interface: str

    def apply(self, plan: EgressPlan) -> None:
        """Follow the NIC's sizes; the shaping is the NIC's."""
        with building(f"set the sizes of {self.interface}", VXLAN_FIX):
            offload = (plan.gso_max_bytes, plan.gso_max_segments)
            set_sizes(self.netlink, self.index, plan.mtu - HEADER_BYTES, offload)


def add_tunnel(netlink: Any, device_index: int, place: tuple[int, int]) -> Tunnel:
    """Make the VXLAN device over a NIC; it is down and has no address yet.

    `netlink` is of the node's network namespace, `place` the node's and the NIC's number.
    UDP checksums are left out, as RFC 7348 wants it.
    """
    node_number, nic_number = place
    name = interface_name(nic_number, has_overlay=True)
    with building(f"make the VXLAN device {name}", VXLAN_FIX):
        netlink.link(
            "add",
            ifname=name,
            kind="vxlan",
            address=overlay_hardware_address(node_number, nic_number),
            vxlan_id=_FIRST_IDENTIFIER + nic_number,
            vxlan_link=device_index,
            vxlan_local=nic_address(node_number, nic_number),
            vxlan_port=PORT,
            vxlan_learning=0,
            vxlan_udp_csum=0,
            vxlan_df=_SET_DONT_FRAGMENT,
        )
        index: int = netlink.link_lookup(ifname=name)[0]
    return Tunnel(netlink=netlink, index=index, interface=name)


def bring_up(tunnel: Tunnel, place: tuple[int, int], num_nodes: int) -> None:
    """Give the tunnel its address and tell it where every peer is."""
    node_number, nic_number = place
    with building(f"bring up {tunnel.interface}", VXLAN_FIX):
        netlink, index = tunnel.netlink, tunnel.index
        netlink.addr("add", index=index, address=overlay_address(*place), prefixlen=PREFIX_LENGTH)
        netlink.link("set", index=index, state="up")
        for peer in range(num_nodes):
            if peer == node_number:
                continue
            hardware = overlay_hardware_address(peer, nic_number)
            netlink.fdb("add", ifindex=index, lladdr=hardware, dst=nic_address(peer, nic_number))
            netlink.neigh(
                "add",
                ifindex=index,
                dst=overlay_address(peer, nic_number),
                lladdr=hardware,
                state="permanent",
            )
