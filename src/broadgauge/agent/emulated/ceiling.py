"""What do plain TCP streams reach between two emulated nodes?

One process a stream and side, large buffers, nothing else: what this host's processors and
kernel can carry through a link, whatever a collective library makes of it.
"""

import math
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from broadgauge.agent.emulated.nodes import Node
from broadgauge.agent.emulated.side_pairs import Call, Serve, TellPort, run_pairs
from broadgauge.agent.sides import Figures
from broadgauge.agent.streams import (
    BUFFER_BYTES,
    OVERRUN_S,
    receive_between,
    send_until,
    span_s,
    sum_gbps,
)
from broadgauge.messages.waiting_limits import waiting_limit_s

_CONNECT_S = waiting_limit_s(60.0)
"""A link may delay each packet by 10 s, and TCP's handshake takes three of them."""
Work = Callable[[socket.socket], Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """What TCP streams from one node to another delivered, as the receiver counted it."""

    payload_gbps: float
    """10^9 bit/s of payload after the warm-up, all streams together: at least so much."""
    duration_s: float
    """From the first stream's start to the last one's end, warm-up left out."""
    payload_bytes: int
    """All that arrived, warm-up included."""
    num_streams: int


def measure_stream(
    sender: Node,
    receiver: Node,
    *,
    duration_s: float = 1.0,
    warm_up_s: float = 0.3,
    num_streams: int = 1,
) -> StreamResult:
    """How much payload do `num_streams` TCP streams deliver for `duration_s`?

    Call it in PID 1, between idle nodes: it forks and waits.
    """
    begin = time.monotonic() + warm_up_s
    end = begin + duration_s

    def send(connection: socket.socket) -> Figures:
        send_until(connection, end + OVERRUN_S)
        return {}

    def receive(connection: socket.socket) -> Figures:
        return receive_between(connection, begin, end)

    return _sum_streams(
        run_pairs(sender, receiver, _sends(send), _receives(receive), num_pairs=num_streams)
    )


def send_exactly(sender: Node, receiver: Node, payload_bytes: int) -> StreamResult:
    """At which rate do exactly `payload_bytes` come over one stream? Known to the byte."""

    def send(connection: socket.socket) -> Figures:
        left = payload_bytes
        payload = memoryview(bytearray(BUFFER_BYTES))
        while left > 0:
            left -= connection.send(payload[: min(left, BUFFER_BYTES)])
        return {}

    def receive(connection: socket.socket) -> Figures:
        return receive_between(connection, 0.0, math.inf)

    return _sum_streams(run_pairs(sender, receiver, _sends(send), _receives(receive)))


def _sends(work: Work) -> Call:
    """`work` given a connection to the receiver."""

    def call(address: str, port: int) -> Figures:
        with socket.create_connection((address, port), timeout=_CONNECT_S) as connection:
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return work(connection)

    return call


def _receives(work: Work) -> Serve:
    """`work` given the connection that the sender makes."""

    def serve(address: str, tell_port: TellPort) -> Figures:
        with socket.create_server((address, 0)) as server:
            server.settimeout(_CONNECT_S)
            tell_port(server.getsockname()[1])
            connection, _ = server.accept()
        with connection:
            connection.settimeout(None)
            return work(connection)

    return serve


def _sum_streams(pairs: list[tuple[Figures, Figures]]) -> StreamResult:
    received = [side for _, side in pairs]
    return StreamResult(
        payload_gbps=sum_gbps(received),
        duration_s=span_s(received),
        payload_bytes=round(sum(one["payload_bytes"] for one in received)),
        num_streams=len(pairs),
    )
