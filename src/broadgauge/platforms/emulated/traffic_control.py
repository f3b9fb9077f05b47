"""How are the kernel's queues set and read? HTB over bfifo, or a counter, through netlink.

The options are filled in here, because pyroute2's own HTB sends 64-bit rates without a burst
that fits them, and it knows no bfifo.
Source of every layout: linux/pkt_sched.h (tc_htb_glob, tc_htb_opt, tc_ratespec, tc_fifo_qopt).
"""

import struct
from dataclasses import dataclass
from typing import Any

HTB_HANDLE = 0x1_0000
CLASS_HANDLE = 0x1_0010
FIFO_HANDLE = 0x10_0000
CLSACT_HANDLE = 0xFFFF_0000
_CLSACT_EGRESS = 0xFFFF_FFF3
TC_H_ROOT = 0xFFFF_FFFF

_HTB_VERSION = 3
_LINKLAYER_ETHERNET = 1
_NS_PER_TICK = 64
"""Source: PSCHED_SHIFT 6 in include/net/pkt_sched.h."""
_UINT32_MAX = 0xFFFF_FFFF
_UNUSED_ETHERTYPE = 0x88B5
"""IEEE 802 local experimental EtherType 1: no packet has it."""

_NEW_QDISC, _NEW_CLASS = 36, 40
_CREATE = 0x1 | 0x4 | 0x400 | 0x200  # request, acknowledge, create, exclusive
_CHANGE = 0x1 | 0x4


@dataclass(frozen=True, slots=True, kw_only=True)
class HtbRate:
    """What one HTB class lets pass."""

    bytes_per_s: int
    burst_bytes: int
    quantum_bytes: int


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


def add_htb(netlink: Any, index: int, rate: HtbRate, fifo_bytes: int) -> None:
    """Put HTB with one class over a bfifo at the root of interface `index`."""
    glob = {"version": _HTB_VERSION, "rate2quantum": 10, "defcls": CLASS_HANDLE & 0xFFFF}
    options = {"attrs": [["TCA_HTB_INIT", glob]]}
    _send(netlink, _NEW_QDISC, _CREATE, (index, HTB_HANDLE, TC_H_ROOT), ("htb", options))
    set_htb_rate(netlink, index, rate, flags=_CREATE)
    set_fifo_limit(netlink, index, fifo_bytes, flags=_CREATE)


def set_htb_rate(netlink: Any, index: int, rate: HtbRate, *, flags: int = _CHANGE) -> None:
    """Change the class in place: queued packets and counters stay."""
    options = {
        "attrs": [
            ["TCA_HTB_PARMS", htb_parameters(rate)],
            ["TCA_HTB_RATE64", rate.bytes_per_s],
            ["TCA_HTB_CEIL64", rate.bytes_per_s],
        ]
    }
    _send(netlink, _NEW_CLASS, flags, (index, CLASS_HANDLE, HTB_HANDLE), ("htb", options))


def set_fifo_limit(netlink: Any, index: int, limit_bytes: int, *, flags: int = _CHANGE) -> None:
    """Change how many bytes may wait below the class."""
    options = struct.pack("=I", min(limit_bytes, _UINT32_MAX))
    _send(netlink, _NEW_QDISC, flags, (index, FIFO_HANDLE, CLASS_HANDLE), ("bfifo", options))


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
    """What has this qdisc counted?"""
    for message in netlink.get_qdiscs(index=index):
        if message["handle"] == handle and message["index"] == index:
            raw = message.get_attr("TCA_STATS")
            return QdiscStatistics(
                num_bytes=raw["bytes"],
                num_packets=raw["packets"],
                num_drops=raw["drop"],
                num_overlimits=raw["overlimits"],
                backlog_bytes=raw["backlog"],
            )
    raise OSError(f"interface {index} has lost its qdisc {handle >> 16:x}:")


def htb_parameters(rate: HtbRate) -> dict[str, int]:
    """What does `struct tc_htb_opt` hold for this rate?

    The 32-bit rates are capped; the 64-bit attributes beside them carry the real ones. Naming
    the link layer spares the rate tables that old kernels wanted.
    """
    burst_ns = -(-rate.burst_bytes * 1_000_000_000 // rate.bytes_per_s)
    burst_ticks = max(1, -(-burst_ns // _NS_PER_TICK))
    capped = min(rate.bytes_per_s, _UINT32_MAX)
    return {
        "rate": capped,
        "rate___reserved": _LINKLAYER_ETHERNET,
        "ceil": capped,
        "ceil___reserved": _LINKLAYER_ETHERNET,
        "buffer": burst_ticks,
        "cbuffer": burst_ticks,
        "quantum": rate.quantum_bytes,
    }


def _send(
    netlink: Any,
    message_type: int,
    flags: int,
    place: tuple[int, int, int],
    kind_and_options: tuple[str, Any],
) -> None:
    """Send one traffic-control message and wait for the kernel's yes."""
    from pyroute2.netlink.rtnl.tcmsg import tcmsg

    message = tcmsg()
    message["index"], message["handle"], message["parent"] = place
    kind, options = kind_and_options
    message["attrs"] = [["TCA_KIND", kind], ["TCA_OPTIONS", options]]
    message["header"]["type"], message["header"]["flags"] = message_type, flags
    # Not nlm_request: in pyroute2 0.9.7 it fails with KeyError 'nlm_generator'.
    netlink.nlm_request_batch([message])
