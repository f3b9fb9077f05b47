"""A link with delay and loss where the kernel has no netem: frames pass through this process.

Of a cluster of two nodes, the second node's port leaves the switch for a switch of its own; the
two are joined by a pair of TAP devices, and what comes out of one of them is written to the other
after a while, or not at all.
"""

import fcntl
import heapq
import mmap
import os
import random
import select
import struct
import time
from typing import Any

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_LONGEST_FRAME_BYTES = 9100


class DelayedCable:
    """The cable between the first node's switch and the second's. Delay and loss change at once."""

    def __init__(self, netlink: Any, *, seed: int) -> None:
        """Call it in PID 1, once the cluster is built."""
        self._knobs = mmap.mmap(-1, 16)  # shared with the child that forwards
        self.set(delay_s=0.0, loss_ratio=0.0)
        netlink.link("add", ifname="far0", kind="bridge", br_stp_state=0, br_forward_delay=0)
        [switch], [far] = (netlink.link_lookup(ifname=name) for name in ("rail0", "far0"))
        [port] = netlink.link_lookup(ifname="n1e0")
        netlink.link("set", index=far, state="up")
        netlink.link("set", index=port, master=far)
        taps = []
        for name, master in (("tap0", switch), ("tap1", far)):
            taps.append(_open_tap(name))
            [index] = netlink.link_lookup(ifname=name)
            netlink.link("set", index=index, mtu=9000, master=master, state="up")
        if os.fork() == 0:
            try:
                self._forward(taps[0], taps[1], random.Random(seed))
            finally:
                os._exit(1)

    def set(self, *, delay_s: float, loss_ratio: float) -> None:
        """`delay_s` in each direction; `loss_ratio`: of the frames of each."""
        self._knobs[:16] = struct.pack("dd", delay_s, loss_ratio)

    def _forward(self, first: int, second: int, dice: random.Random) -> None:
        other = {first: second, second: first}
        waiting: list[tuple[float, int, int, bytes]] = []
        number = 0
        while True:
            patience_s = 1.0 if not waiting else max(0.0, waiting[0][0] - time.monotonic())
            ready, _, _ = select.select([first, second], [], [], patience_s)
            delay_s, loss_ratio = struct.unpack("dd", self._knobs[:16])
            for fd in ready:
                frame = os.read(fd, _LONGEST_FRAME_BYTES)
                if dice.random() >= loss_ratio:
                    number += 1
                    due_s = time.monotonic() + delay_s
                    heapq.heappush(waiting, (due_s, number, other[fd], frame))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, fd, frame = heapq.heappop(waiting)
                os.write(fd, frame)


def _open_tap(name: str) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return fd
