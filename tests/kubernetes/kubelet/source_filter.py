"""How does a fabric drop what comes from a source address that it did not give, as a VPC does?

On the switch's port, where a pod can't reach: u32 filters at the ingress let IPv4 packets of the
given source and ARP of the given sender pass; all else is redirected to a bridge without ports,
which drops and counts. That needs only cls_u32 and act_mirred, not gact, flower or nftables.
"""

import ipaddress
from typing import Any

_CLSACT_INGRESS = 0xFFFF_FFF2
_IPV4, _ARP, _ANY = 0x0800, 0x0806, 0x0003
_CLASS = 0x1_0001


def add_sink(netlink: Any, name: str) -> int:
    """The bridge without ports; gives its index.

    Without snooping: else the bridge itself reports its groups when it comes up, two packets.
    """
    netlink.link("add", ifname=name, kind="bridge", br_mcast_snooping=0)
    index: int = netlink.link_lookup(ifname=name)[0]
    netlink.link("set", index=index, state="up")
    return index


def allow_only(netlink: Any, port: int, sink: int, address: str) -> None:
    """Let only this IPv4 address send through `port`.

    ARP's sender address begins at byte 14, which u32 reaches as two halves of words (RFC 826).
    """
    if not any(
        message.get_attr("TCA_KIND") == "clsact"
        for message in netlink.get_qdiscs(index=port)
        if message["index"] == port
    ):
        netlink.tc("add", "clsact", port)
    number = int(ipaddress.IPv4Address(address.partition("/")[0]))
    # What the kernel itself says without an address, when a device comes up, is not counted: IGMP.
    high, low = number >> 16, (number & 0xFFFF) << 16
    allowed = {
        (1, _IPV4): [f"0x{number:08x}/0xffffffff+12"],
        (3, _IPV4): ["0x00020000/0x00ff0000+8"],
        (2, _ARP): [f"0x{high:08x}/0x0000ffff+12", f"0x{low:08x}/0xffff0000+16"],
    }
    for (priority, protocol), keys in allowed.items():
        netlink.tc(
            "add-filter", "u32", port, parent=_CLSACT_INGRESS, prio=priority, protocol=protocol,
            target=_CLASS, keys=keys,
        )  # fmt: skip
    netlink.tc(
        "add-filter", "u32", port, parent=_CLSACT_INGRESS, prio=10, protocol=_ANY, target=_CLASS,
        keys=["0x0/0x0+0"],
        action={"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": sink},
    )  # fmt: skip


def dropped_packets(netlink: Any, sink: int) -> int:
    """How many packets of foreign sources came so far?"""
    (link,) = netlink.get_links(sink)
    return int(link.get_attr("IFLA_STATS64")["tx_packets"])
