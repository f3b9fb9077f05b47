"""What does a plain TCP stream carry? Large buffers, nothing else, as the receiver counts it."""

import math
import socket
import time
from collections.abc import Iterable
from contextlib import suppress

from broadgauge.agent.sides import Figures, SideFailed

BUFFER_BYTES = 256 * 1024
"""One call's worth: it stays in the second-level cache."""
QUEUE_RATIO = 0.1
"""Of the window, at most, to empty a queue that was there when it began."""
OVERRUN_S = 0.1
"""How long senders go on, so that no receiver's window ends for want of data."""


def send_until(connection: socket.socket, end_s: float) -> None:
    """Send till this time of the monotonic clock, or till the receiver has had enough."""
    payload = memoryview(bytearray(BUFFER_BYTES))
    with suppress(ConnectionError):
        while time.monotonic() < end_s:
            connection.send(payload)


def receive_between(connection: socket.socket, begin: float, end: float) -> Figures:
    """Count what arrives from `begin` to `end` (of the monotonic clock), or till the stream ends.

    All streams of one probe share the window, so that their rates may be added. A receiver whose
    core was busy at `begin` finds what arrived meanwhile and takes it faster than any link brings
    it: counted is from the first read that empties the queue, or a tenth into the window where none
    does, since then the receiver itself is the bound. Raises SideFailed where a stream gets nothing
    through in its time, as on cores that others keep busy.
    """
    buffer = bytearray(BUFFER_BYTES)
    total = connection.recv_into(buffer)
    first = now = time.monotonic()
    first_bytes = 0 if first >= begin else None
    latest_first = math.inf if first_bytes is None else first
    while received := connection.recv_into(buffer):
        total += received
        now = time.monotonic()
        if now >= begin and (first_bytes is None or first < latest_first):
            first, first_bytes = now, total
            latest_first = min(latest_first, now + QUEUE_RATIO * (end - begin))
            if received < BUFFER_BYTES:
                latest_first = now
        if now >= end:
            break
    if first_bytes is None or (total == first_bytes and math.isfinite(end)):
        raise SideFailed("a stream got nothing through in its time; were the cores busy?")
    return {
        "payload_bytes": total,
        "measured_bytes": total - first_bytes,
        "duration_s": max(now - first, 1e-9),
    }


def sum_gbps(received: Iterable[Figures]) -> float:
    """10^9 bit/s of payload, of streams that were counted in one window."""
    return sum(8e-9 * one["measured_bytes"] / one["duration_s"] for one in received)
