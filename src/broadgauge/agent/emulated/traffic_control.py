"""How are the kernel's queues set and read? HTB over its leaves, or a counter, through netlink.

The options are filled in here, because pyroute2's own HTB sends 64-bit rates without a burst
that fits them, and it knows no bfifo.
Source of every layout: linux/pkt_sched.h (tc_htb_glob, tc_htb_opt, tc_ratespec, tc_fifo_qopt).
"""

import functools
import ipaddress
import struct
from dataclasses import dataclass
from typing import Any

from broadgauge.agent.emulated.netem import NS_PER_TICK, Netem, netem_options

HTB_HANDLE = 0x1_0000
_TRUNK_CLASS = 0x1_0001
_FIRST_CLASS = 0x1_0010
_FIRST_LEAF = 0x10
CLSACT_HANDLE = 0xFFFF_0000
_CLSACT_EGRESS = 0xFFFF_FFF3
TC_H_ROOT = 0xFFFF_FFFF

_HTB_VERSION = 3
_LINKLAYER_ETHERNET = 1
_UINT32_MAX = 0xFFFF_FFFF
_QUANTUM_BYTES = 1 << 17
"""What a class sends before its sister's turn."""
_UNUSED_ETHERTYPE = 0x88B5
"""IEEE 802 local experimental EtherType 1: no packet has it."""
_IPV4_ETHERTYPE = 0x0800
_DESTINATION_OFFSET = 16
"""Of the destination address in an IPv4 header (RFC 791)."""

_NEW_QDISC, _NEW_CLASS = 36, 40
_CREATE = 0x1 | 0x4 | 0x400 | 0x200  # request, acknowledge, create, exclusive
_CHANGE = 0x1 | 0x4


@dataclass(frozen=True, slots=True, kw_only=True)
class HtbRate:
    """What one HTB class lets pass."""

    bytes_per_s: int
    """What it has for certain."""
    burst_bytes: int
    most_bytes_per_s: int
    """With what its sisters leave."""
    most_burst_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HtbLeaf:
    """One class, and the queue below it."""

    rate: HtbRate
    destination: str | None
    """The packets to this IPv4 address; None: all that no other leaf takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HtbTree:
    """All of an interface's shaping."""

    rate: HtbRate
    """Of the interface."""
    leaves: tuple[HtbLeaf, ...]
    """The first takes what no other does. Several hang on a trunk that has the interface's rate."""
    fifo_bytes: int
    netem: Netem | None
    """None: a leaf's queue is a bfifo."""

    @property
    def structure(self) -> tuple[object, ...]:
        """Equal for trees of which one can be made the other in place."""
        return (self.netem is not None, *(leaf.destination for leaf in self.leaves))


@dataclass(frozen=True, slots=True, kw_only=True)
class QdiscStatistics:
    """What a qdisc has counted since it was made, as the kernel gives it.

    `num_bytes` is 64 bits wide; the kernel wraps the others at 32 bits.
    """

    num_bytes: int
    num_packets: int
    num_drops: int
    num_overlimits: int
    backlog_bytes: int


def add_htb(netlink: Any, index: int) -> None:
    """Put HTB at the root of interface `index`; it has no class yet and holds nothing back."""
    glob = {"version": _HTB_VERSION, "rate2quantum": 10, "defcls": _FIRST_CLASS & 0xFFFF}
    options = {"attrs": [["TCA_HTB_INIT", glob]]}
    _send(netlink, _NEW_QDISC, _CREATE, (index, HTB_HANDLE, TC_H_ROOT), ("htb", options))


def set_classes(netlink: Any, index: int, tree: HtbTree, *, is_new: bool) -> None:
    """Make HTB's classes, or change them in place: what waits and what was counted stays."""
    flags = _CREATE if is_new else _CHANGE
    parent = HTB_HANDLE
    if len(tree.leaves) > 1:
        parent = _TRUNK_CLASS
        _set_class(netlink, flags, (index, _TRUNK_CLASS, HTB_HANDLE), tree.rate)
    for number, leaf in enumerate(tree.leaves):
        _set_class(netlink, flags, (index, _FIRST_CLASS + number, parent), leaf.rate)


def set_queues(netlink: Any, index: int, tree: HtbTree, *, is_new: bool) -> None:
    """Make the queues below the classes, or change them in place."""
    for message in queue_messages(index, tree, is_new=is_new):
        _say(netlink, message)


def queue_messages(index: int, tree: HtbTree, *, is_new: bool) -> list[Any]:
    """What is the kernel told to make them?"""
    flags = _CREATE if is_new else _CHANGE
    return [
        _message(
            _NEW_QDISC,
            flags,
            (index, (_FIRST_LEAF + number) << 16, _FIRST_CLASS + number),
            leaf_queue(tree),
        )
        for number in range(len(tree.leaves))
    ]


def add_filters(netlink: Any, index: int, tree: HtbTree) -> None:
    """Send the packets to each leaf's destination, in a tunnel or not, to its class."""
    for number, leaf in enumerate(tree.leaves):
        if leaf.destination is None:
            continue
        address = int(ipaddress.IPv4Address(leaf.destination))
        netlink.tc(
            "add-filter",
            "u32",
            index,
            parent=HTB_HANDLE,
            prio=1,
            protocol=_IPV4_ETHERTYPE,
            target=_FIRST_CLASS + number,
            keys=[f"0x{address:08x}/0xffffffff+{_DESTINATION_OFFSET}"],
        )


def leaf_queue(tree: HtbTree) -> tuple[str, bytes]:
    """Which qdisc holds the packets that wait below a class? Its kind and its options."""
    if tree.netem is None:
        return "bfifo", struct.pack("=I", min(tree.fifo_bytes, _UINT32_MAX))
    return "netem", netem_options(tree.netem)


def set_sizes(netlink: Any, index: int, mtu: int, offload: tuple[int, int]) -> None:
    """Set an interface's MTU, and how many bytes and segments one packet of offload may have."""
    gso_max_bytes, gso_max_segments = offload
    netlink.link(
        "set", index=index, mtu=mtu, gso_max_size=gso_max_bytes, gso_max_segs=gso_max_segments
    )


def delete_htb(netlink: Any, index: int) -> None:
    """Take HTB away: packets then pass without a queue, as veth does by itself."""
    netlink.tc("del", "htb", index, HTB_HANDLE, root=True)


def add_counter(netlink: Any, index: int) -> None:
    """Count what leaves through an interface that has no queue.

    clsact counts each packet, per processor and by its segments on the wire, as soon as any
    filter hangs on its egress; the filter here waits for packets that nobody sends.
    Source: tc_run() in net/core/dev.c.
    """
    netlink.tc("add", "clsact", index)
    netlink.tc(
        "add-filter",
        "u32",
        index,
        parent=_CLSACT_EGRESS,
        prio=1,
        protocol=_UNUSED_ETHERTYPE,
        target=HTB_HANDLE + 1,
        keys=["0x0/0x0+0"],
    )


def delete_counter(netlink: Any, index: int) -> None:
    """Take the counter of `add_counter` away."""
    netlink.tc("del", "clsact", index)


def read_statistics(netlink: Any, index: int, handle: int) -> QdiscStatistics:
    """What has this qdisc counted? Drops are those of the queues below it, where it has any.

    HTB counts what its queues refuse, but not what netem loses by chance.
    """
    found: Any = None
    drops: list[int] = []
    for message in netlink.get_qdiscs(index=index):
        if message["index"] != index:
            continue
        if message["handle"] == handle:
            found = message.get_attr("TCA_STATS")
        elif handle == HTB_HANDLE and message["handle"] >> 16 >= _FIRST_LEAF:
            drops.append(message.get_attr("TCA_STATS")["drop"])
    if found is None:
        raise OSError(f"interface {index} has lost its qdisc {handle >> 16:x}:")
    return QdiscStatistics(
        num_bytes=found["bytes"],
        num_packets=found["packets"],
        num_drops=sum(drops) if drops else found["drop"],
        num_overlimits=found["overlimits"],
        backlog_bytes=found["backlog"],
    )


def htb_parameters(rate: HtbRate) -> dict[str, int]:
    """What does `struct tc_htb_opt` hold for this rate?

    The 32-bit rates are capped; the 64-bit attributes beside them carry the real ones. Naming
    the link layer spares the rate tables that old kernels wanted.
    """
    return {
        "rate": min(rate.bytes_per_s, _UINT32_MAX),
        "rate___reserved": _LINKLAYER_ETHERNET,
        "ceil": min(rate.most_bytes_per_s, _UINT32_MAX),
        "ceil___reserved": _LINKLAYER_ETHERNET,
        "buffer": _ticks(rate.burst_bytes, rate.bytes_per_s),
        "cbuffer": _ticks(rate.most_burst_bytes, rate.most_bytes_per_s),
        "quantum": _QUANTUM_BYTES,
    }


def _ticks(burst_bytes: int, bytes_per_s: int) -> int:
    """How long does this burst last, in the kernel's ticks, rounded up?"""
    burst_ns = -(-burst_bytes * 1_000_000_000 // bytes_per_s)
    return max(1, -(-burst_ns // NS_PER_TICK))


def _set_class(netlink: Any, flags: int, place: tuple[int, int, int], rate: HtbRate) -> None:
    options = {
        "attrs": [
            ["TCA_HTB_PARMS", htb_parameters(rate)],
            ["TCA_HTB_RATE64", rate.bytes_per_s],
            ["TCA_HTB_CEIL64", rate.most_bytes_per_s],
        ]
    }
    _send(netlink, _NEW_CLASS, flags, place, ("htb", options))


def _send(
    netlink: Any,
    message_type: int,
    flags: int,
    place: tuple[int, int, int],
    kind_and_options: tuple[str, Any],
) -> None:
    """Send one traffic-control message and wait for the kernel's yes."""
    message = _message(message_type, flags, place, kind_and_options)
    _say(netlink, message)


def _say(netlink: Any, message: Any) -> None:
    # Not nlm_request: in pyroute2 0.9.7 it fails with KeyError 'nlm_generator'.
    netlink.nlm_request_batch([message])


def _message(
    message_type: int, flags: int, place: tuple[int, int, int], kind_and_options: tuple[str, Any]
) -> Any:
    """The message, not yet encoded. Options in bytes go out as they are."""
    from pyroute2.netlink.rtnl.tcmsg import tcmsg

    kind, options = kind_and_options
    message = _raw_message_class()() if isinstance(options, bytes) else tcmsg()
    message["index"], message["handle"], message["parent"] = place
    message["attrs"] = [["TCA_KIND", kind], ["TCA_OPTIONS", options]]
    message["header"]["type"], message["header"]["flags"] = message_type, flags
    return message


@functools.cache
def _raw_message_class() -> Any:
    """pyroute2's own class fills in the options of a kind it knows, such as netem, from a
    dictionary, and silently sends zeros in the place of bytes. Source: linux/rtnetlink.h."""
    from pyroute2.netlink import nlmsg
    from pyroute2.netlink.rtnl.tcmsg import tcmsg

    class RawTrafficMessage(nlmsg):  # type: ignore[misc]  # pyroute2 has no types
        prefix = "TCA_"
        fields = tcmsg.fields
        nla_map = (("TCA_UNSPEC", "none"), ("TCA_KIND", "asciiz"), ("TCA_OPTIONS", "hex"))

    return RawTrafficMessage
