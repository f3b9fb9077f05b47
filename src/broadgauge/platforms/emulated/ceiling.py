"""What do plain TCP streams reach between two emulated nodes, and how long is a round trip?

One process a stream and side, large buffers, nothing else: what this host's processors and
kernel can carry through a link, whatever a collective library makes of it.
"""

import math
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

from broadgauge.platforms.emulated.connected_pairs import run_pairs
from broadgauge.platforms.emulated.nodes import Node

BUFFER_BYTES = 256 * 1024
"""One call's worth: it stays in the second-level cache."""
NUM_ROUND_TRIPS = 211
"""A prime, so that a count in another tool's output is recognisably this probe's."""
_NUM_WARM_UP_ROUND_TRIPS = 23
_ROUND_TRIPS_S = 2.0
"""On a link with a long delay fewer round trips, at least one, tell as much."""
_OVERRUN_S = 0.1
"""How long senders go on, so that no receiver's window ends for want of data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """What TCP streams from one node to another delivered, as the receiver counted it."""

    payload_gbps: float
    """10^9 bit/s of payload after the warm-up, summed over the streams."""
    duration_s: float
    """The longest stream's measured part, warm-up left out."""
    payload_bytes: int
    """All that arrived, warm-up included."""
    num_streams: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What stands beside every figure measured on this host's emulated links."""

    stream: StreamResult
    round_trip_time_s: float
    """Median of up to 211 exchanges of one byte over one idle TCP connection."""


def measure_ceiling(sender: Node, receiver: Node, *, duration_s: float = 1.0) -> Ceiling:
    """What do one stream and one byte reach on the link between two idle nodes, as it is now?

    Call it in PID 1; it forks, waits, and takes `duration_s` plus half a second.
    """
    round_trip_time_s = measure_round_trip_time_s(sender, receiver)
    stream = measure_stream(sender, receiver, duration_s=duration_s)
    return Ceiling(stream=stream, round_trip_time_s=round_trip_time_s)


def measure_stream(
    sender: Node,
    receiver: Node,
    *,
    duration_s: float = 1.0,
    warm_up_s: float = 0.3,
    num_streams: int = 1,
) -> StreamResult:
    """How much payload do `num_streams` TCP streams deliver for `duration_s`?"""
    begin = time.monotonic() + warm_up_s
    end = begin + duration_s

    def send(connection: socket.socket) -> dict[str, float]:
        payload = memoryview(bytearray(BUFFER_BYTES))
        with suppress(ConnectionError):
            while time.monotonic() < end + _OVERRUN_S:
                connection.send(payload)
        return {}

    def receive(connection: socket.socket) -> dict[str, float]:
        return _receive_between(connection, begin, end)

    return _sum_streams(run_pairs(sender, receiver, send, receive, num_streams))


def send_exactly(sender: Node, receiver: Node, payload_bytes: int) -> StreamResult:
    """How long do exactly `payload_bytes` take over one stream? A workload known to the byte."""

    def send(connection: socket.socket) -> dict[str, float]:
        left = payload_bytes
        payload = memoryview(bytearray(BUFFER_BYTES))
        while left > 0:
            left -= connection.send(payload[: min(left, BUFFER_BYTES)])
        return {}

    def receive(connection: socket.socket) -> dict[str, float]:
        return _receive_between(connection, 0.0, math.inf)

    return _sum_streams(run_pairs(sender, receiver, send, receive, 1))


def measure_round_trip_time_s(sender: Node, receiver: Node) -> float:
    """How long does one byte take there and back, at the median? In two seconds or so."""

    def ping(connection: socket.socket) -> dict[str, float]:
        samples: list[float] = []
        begin = first = time.perf_counter()
        while len(samples) < _NUM_WARM_UP_ROUND_TRIPS + NUM_ROUND_TRIPS:
            connection.send(b"x")
            connection.recv(1)
            now = time.perf_counter()
            samples.append(now - begin)
            begin = now
            if now - first > _ROUND_TRIPS_S:
                break
        warm_up = min(_NUM_WARM_UP_ROUND_TRIPS, len(samples) // 10)
        return {"round_trip_time_s": median(samples[warm_up:])}

    def pong(connection: socket.socket) -> dict[str, float]:
        while byte := connection.recv(1):
            connection.send(byte)
        return {}

    [(sent, _)] = run_pairs(sender, receiver, ping, pong, 1)
    return sent["round_trip_time_s"]


def _receive_between(connection: socket.socket, begin: float, end: float) -> dict[str, float]:
    """Count what arrives from `begin` to `end` (of the monotonic clock), or till the stream ends.

    All streams of one probe share the window, so that their rates may be added.
    """
    buffer = bytearray(BUFFER_BYTES)
    total = connection.recv_into(buffer)
    first = now = time.monotonic()
    first_bytes = 0 if first >= begin else None
    while received := connection.recv_into(buffer):
        total += received
        now = time.monotonic()
        if first_bytes is None and now >= begin:
            first, first_bytes = now, total
        if now >= end:
            break
    if first_bytes is None:
        raise TimeoutError("the stream ended within its warm-up")
    return {
        "payload_bytes": total,
        "measured_bytes": total - first_bytes,
        "duration_s": max(now - first, 1e-9),
    }


def _sum_streams(pairs: list[tuple[dict[str, float], dict[str, float]]]) -> StreamResult:
    received = [side for _, side in pairs]
    return StreamResult(
        payload_gbps=sum(8e-9 * one["measured_bytes"] / one["duration_s"] for one in received),
        duration_s=max(one["duration_s"] for one in received),
        payload_bytes=round(sum(one["payload_bytes"] for one in received)),
        num_streams=len(pairs),
    )
