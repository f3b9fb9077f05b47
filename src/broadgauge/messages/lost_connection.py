"""When is the other side of a TCP connection gone, though it said no goodbye?"""

import asyncio
import socket

from broadgauge.messages.waiting_limits import waiting_limit_s

_OPTIONS = (
    (socket.TCP_KEEPIDLE, 10),
    (socket.TCP_KEEPINTVL, 5),
    (socket.TCP_KEEPCNT, min(127, max(1, round(waiting_limit_s(4))))),
    (socket.TCP_USER_TIMEOUT, round(waiting_limit_s(30_000))),
)
"""Seconds, seconds, times (the kernel allows 127), milliseconds: one that is silent, and one that
takes nothing, is seen to be gone after half a minute. Source: tcp(7)."""


def watch_peer(writer: asyncio.StreamWriter) -> None:
    """A peer whose machine is gone ends the connection with an OSError."""
    peer = writer.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _OPTIONS:
        peer.setsockopt(socket.IPPROTO_TCP, option, value)
