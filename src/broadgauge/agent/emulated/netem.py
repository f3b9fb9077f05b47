"""What does netem do to each packet that a node sends, and how is it told?

It is HTB's leaf: a packet is delayed or lost first, then serialised at the line rate, so the delay
adds to the whole of a transfer. What waits for the shaper waits in netem too.

Jitter is drawn for each packet, uniform between delay − jitter and delay + jitter, and a packet
never overtakes another: it leaves when the one before it does, if its own draw was shorter. So the
delay of packets that follow each other closely is near the upper end, as behind a real queue.
(netem reorders by itself; with a `rate`, here one that takes no time, it keeps the order.)
Source: netem_enqueue() and tabledist() in net/sched/sch_netem.c.
"""

import struct
from dataclasses import dataclass

_UINT32_MAX = 0xFFFF_FFFF
_ORDERING_BYTES_PER_S = 1_250_000_000_000
"""10 Tbit/s: a packet of 64 KiB takes 52 ns of it."""
_PACKET_FLOOR_BYTES = 576
"""The smallest MTU: no data packet is taken for smaller when their number is bounded."""

NS_PER_TICK = 64
"""Source: PSCHED_SHIFT 6 in include/net/pkt_sched.h. 32 bits of them are 275 s."""
_RATE, _RATE64 = 6, 8
"""TCA_NETEM_*. Source: linux/pkt_sched.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Netem:
    """What happens to each packet before the shaper takes it."""

    delay_s: float
    jitter_s: float
    loss_ratio: float
    limit_packets: int
    """How many may wait, for their time or for the shaper."""


def limit_packets(rate_gbps: float, longest_delay_s: float, fifo_bytes: int) -> int:
    """How many packets may wait? Those of the longest delay at this rate, twice, and a full queue.

    Twice, as TCP may send a window on top of the one that is under way. It is a limit, not a
    reservation.
    """
    under_way_bytes = 2 * rate_gbps * 1e9 / 8 * longest_delay_s
    return min(_UINT32_MAX, 1000 + round((under_way_bytes + fifo_bytes) / _PACKET_FLOOR_BYTES))


def netem_options(netem: Netem) -> bytes:
    """What does TCA_OPTIONS hold? `struct tc_netem_qopt`, then the rate where jitter needs one."""
    limit = min(netem.limit_packets, _UINT32_MAX)
    loss = round(netem.loss_ratio * _UINT32_MAX)
    delay, jitter = (_ticks(seconds) for seconds in (netem.delay_s, netem.jitter_s))
    gap = duplicate = 0
    options = struct.pack("=6I", delay, limit, loss, gap, duplicate, jitter)
    if netem.jitter_s > 0:
        capped = min(_ORDERING_BYTES_PER_S, _UINT32_MAX)
        options += _attribute(_RATE64, struct.pack("=Q", _ORDERING_BYTES_PER_S))
        options += _attribute(_RATE, struct.pack("=IiIi", capped, 0, 0, 0))
    return options


def _ticks(seconds: float) -> int:
    return round(seconds * 1e9 / NS_PER_TICK)


def _attribute(number: int, value: bytes) -> bytes:
    """A netlink attribute; every value here is a multiple of 4 bytes. Source: linux/netlink.h."""
    return struct.pack("=HH", 4 + len(value), number) + value
