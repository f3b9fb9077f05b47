"""How is the queue of a link kept full, and read closely?

Datagrams fill it, as large as TCP's packets of segmentation offload are: they need no receiver, and
some tenths of a second of them wait, so that a sender without a core does not let the queue run
empty. A reading is one netlink message of ours, 20 to 50 µs between the clock's two; pyroute2 takes
milliseconds to make sense of the same answer.
"""

import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.platforms.emulated.rate_verdict import Reading

from broadgauge.agent.emulated.nodes import Node
from broadgauge.agent.emulated.shaping import LinkPlan, gso_max_bytes
from broadgauge.agent.emulated.syscalls import CloneFlag, setns

AHEAD_S = 0.3
"""How much of the line's time is to wait in its queue: twice the mean burst of a busy machine."""
_MOST_AHEAD_BYTES = 48 << 20
"""Of the 64 MiB that a node's own queue holds."""
_NUM_SOCKETS = 64
"""The kernel lets an ordinary user's socket have 208 KiB, unless it was told otherwise."""
_PORT = 9
_SOL_UDP, _UDP_SEGMENT = 17, 103
_DATAGRAM_HEADER_BYTES = 28
_MOST_DATAGRAM_BYTES = 65_507
_MOST_SEGMENTS = 64
_RTM_NEWQDISC, _RTM_GETQDISC, _REQUEST = 36, 38, 0x1 | 0x8  # and echo: the answer is for us
_MESSAGE = struct.Struct("=IHHII")
_TRAFFIC = struct.Struct("=BxxxiIII")
_ATTRIBUTE = struct.Struct("=HH")
_TCA_STATS2, _STATS_BASIC, _STATS_QUEUE = 7, 1, 3


class QueueReader:
    """Reads one qdisc of an interface, again and again."""

    def __init__(self, home_fd: int, net_fd: int, index: int, handle: int) -> None:
        """`home_fd`: this process's own network namespace; `net_fd`: the interface's."""
        with _within(net_fd, home_fd):
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self._question = _MESSAGE.pack(
            _MESSAGE.size + _TRAFFIC.size, _RTM_GETQDISC, _REQUEST, 1, 0
        ) + _TRAFFIC.pack(0, index, handle, 0, 0)

    def read(self) -> Reading:
        before_s = time.monotonic()
        self._socket.send(self._question)
        answer = self._socket.recv(1 << 16)
        after_s = time.monotonic()
        num_bytes, backlog_bytes = _parse(answer)
        return Reading(
            before_s=before_s, after_s=after_s, num_bytes=num_bytes, backlog_bytes=backlog_bytes
        )


@contextmanager
def _within(net_fd: int, home_fd: int) -> Iterator[None]:
    """Sockets made inside belong to that network namespace for ever."""
    setns(net_fd, CloneFlag.NEWNET)
    try:
        yield
    finally:
        setns(home_fd, CloneFlag.NEWNET)


def _parse(answer: bytes) -> tuple[int, int]:
    """Bytes that left, and bytes that wait. Source: linux/rtnetlink.h, linux/gen_stats.h."""
    length, kind, *_ = _MESSAGE.unpack_from(answer)
    if kind != _RTM_NEWQDISC:
        raise OSError(-struct.unpack_from("=i", answer, _MESSAGE.size)[0], "no such qdisc")
    attributes = dict(_attributes(answer[_MESSAGE.size + _TRAFFIC.size : length]))
    statistics = dict(_attributes(attributes[_TCA_STATS2]))
    (num_bytes,) = struct.unpack_from("=Q", statistics[_STATS_BASIC])
    _, backlog_bytes = struct.unpack_from("=II", statistics[_STATS_QUEUE])
    return num_bytes, backlog_bytes


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        yield kind & 0x3FFF, data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]


@contextmanager
def filling(sender: Node, receiver: Node, link: LinkPlan, overhead_bytes: int) -> Iterator[None]:
    """Keep what leads from one node to the other full."""
    with _within(receiver.namespaces.net, receiver.home.net):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # so that nobody answers
        sink.bind((receiver.address, _PORT))
    pid = os.fork()
    if pid == 0:
        try:
            sender.enter()
            _send(receiver.address, link, overhead_bytes)
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        sink.close()


def _send(address: str, link: LinkPlan, overhead_bytes: int) -> None:
    """Datagrams of `link`'s offload size, for ever."""
    assert link.rate_gbps is not None
    segment_bytes = link.mtu - overhead_bytes - _DATAGRAM_HEADER_BYTES
    most_bytes = min(gso_max_bytes(link), _MOST_DATAGRAM_BYTES)
    num_segments = max(1, min(most_bytes // (link.mtu + 14), _MOST_SEGMENTS))
    payload = bytes(num_segments * segment_bytes)
    ahead_bytes = min(AHEAD_S * link.rate_gbps * 1.25e8, _MOST_AHEAD_BYTES)
    sockets = []
    for _ in range(_NUM_SOCKETS):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(_SOL_UDP, _UDP_SEGMENT, segment_bytes)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, round(ahead_bytes / _NUM_SOCKETS))
        sockets.append(one)
    while True:
        for one in sockets:
            one.sendto(payload, (address, _PORT))
