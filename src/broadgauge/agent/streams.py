"""What does a plain TCP stream carry, at least? Large buffers only, counted by the receiver.

**The law.** What is stated of a link is never more than it delivered, however long sender, receiver
or both had no core. Let A(t) be the bytes that have arrived at the receiver's sockets by t. A read
says little of A: a receiver that was away finds what came meanwhile, and takes it faster than any
link brings it. But A is what was read so far and what the kernel still holds, and the kernel says
how much that is. So, for a stream that is counted from s to e,

    counted = (read + queued) at e - (read + held) at s <= A(e) - A(s)

where `queued` is what could be read at once, a lower bound of what waits, and `held` all memory
that the socket's packets take, an upper one: also of those behind a gap, which can be read all at
once when the lost one is there. The clock is read before the kernel is asked at s, and after it at
e, so that a core lost between the two only adds time. Nobody else reads meanwhile.

- A receiver that is away as its window begins starts late, and what waited is not counted. It then
  goes on for half a window at least: over a short span a burst would pass for a rate. Packets take
  more memory than they have bytes; so the start is the first moment at which they take none, if one
  comes soon. Where the receiver is the slowest part none does, and all that waits is taken off.
- A sender that is away sends nothing: less is counted in the same time. What waits in queues on its
  side, or before the slowest part of the link, still has to pass that part.
- Streams at once may have the link in turns. So their bytes are added, and divided by the time from
  the first one's s to the last one's e, in which all of them arrived (`sum_gbps`).

What the receiver's kernel holds before its sockets (the NIC's ring, packets that no core has taken
up) counts as the link's: where the whole machine stood still just before s, up to one TCP window
can come in a burst. A token bucket on the way that passes a burst after a pause did carry that.
"""

import fcntl
import math
import socket
import struct
import termios
import time
from collections.abc import Sequence
from contextlib import suppress

from broadgauge.agent.sides import Figures, SideFailed

BUFFER_BYTES = 256 * 1024
"""One call's worth: it stays in the second-level cache."""
OVERRUN_S = 0.1
"""How long senders go on, so that no receiver's window ends for want of data."""
SETTLE_S = 0.01
"""How long a start is looked for at which nothing waits, so that nothing has to be estimated. A
receiver that has its core again takes a full TCP window, some MB, in less."""
_SO_MEMINFO = 55
"""Source: Linux, include/uapi/asm-generic/socket.h; from 4.12 on."""
_MEMINFO = struct.Struct("=9I")
_RMEM_ALLOC, _BACKLOG = 0, 7
"""Source: Linux, include/uapi/linux/sock_diag.h, SK_MEMINFO_*."""


def send_until(connection: socket.socket, end_s: float) -> None:
    """Send till this time of the monotonic clock, or till the receiver has had enough."""
    payload = memoryview(bytearray(BUFFER_BYTES))
    with suppress(ConnectionError):
        while time.monotonic() < end_s:
            connection.send(payload)


def receive_between(connection: socket.socket, begin: float, end: float) -> Figures:
    """Count what arrives from `begin` to `end` (of the monotonic clock), or till the stream ends.

    By the law above; all streams of one probe share the window. Raises SideFailed where nothing is
    known to have arrived in it, as on cores that others keep busy.
    """
    buffer = bytearray(BUFFER_BYTES)
    half_s, settled_s = (end - begin) / 2, math.inf
    total, before, start_s, now = 0, 0, math.inf, 0.0
    while received := connection.recv_into(buffer):
        total += received
        now = time.monotonic()
        if begin <= now < settled_s:
            held = held_bytes(connection)
            settled_s = now if held == 0 else min(settled_s, now + SETTLE_S)
            start_s, before = now, total + held
            end = max(end, now + half_s)
        if now >= end:
            total += queued_bytes(connection)
            now = time.monotonic()
            break
    is_too_little = total <= before and math.isfinite(end)
    if start_s > now or is_too_little:
        raise SideFailed("a stream got nothing through in its time; were the cores busy?")
    return {
        "payload_bytes": total,
        "measured_bytes": max(0, total - before),
        "start_s": start_s,
        "end_s": now,
    }


def queued_bytes(connection: socket.socket) -> int:
    """How much could be read at once? Source: tcp(7), SIOCINQ."""
    (queued,) = struct.unpack("=i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))
    return int(queued)


def held_bytes(connection: socket.socket) -> int:
    """How much can wait in this socket at most, also behind a gap? Its packets' memory.

    Where the kernel does not say (before Linux 4.12), what could be read at once.
    """
    try:
        said = connection.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return queued_bytes(connection)
    memory = _MEMINFO.unpack(said)
    return int(memory[_RMEM_ALLOC] + memory[_BACKLOG])


def span_s(received: Sequence[Figures]) -> float:
    """From the first one's start to the last one's end."""
    span_s = max(one["end_s"] for one in received) - min(one["start_s"] for one in received)
    return max(span_s, 1e-9)


def sum_gbps(received: Sequence[Figures]) -> float:
    """10^9 bit/s of payload that streams of one window carried at least, all together."""
    return 8e-9 * sum(one["measured_bytes"] for one in received) / span_s(received)
