"""Which container said something to the kubelet? One thread reads all status pipes."""

import json
import os
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
OnMessage = Callable[[Json | None], None]
"""Given a message of a keeper, or None when its pipe has ended without a further one."""


def read_message(fd: int) -> Json | None:
    """The next line of a keeper; None at the end. Lines are short, so they come whole."""
    line = bytearray()
    while (sign := os.read(fd, 1)) not in (b"", b"\n"):
        line += sign
    return json.loads(line) if line else None


class Exits:
    """Waits for all running containers at once."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waking, self._wake = socket.socketpair()
        self._new: list[tuple[int, OnMessage]] = []
        self._lock = threading.Lock()
        self._selector.register(self._waking, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="exits", daemon=True).start()

    def watch(self, fd: int, on_message: OnMessage) -> None:
        """Call `on_message` with what comes next on `fd`, which is closed then."""
        with self._lock:
            self._new.append((fd, on_message))
        self._wake.send(b"w")

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._waking:
                    self._waking.recv(64)
                    self._take_new()
                else:
                    self._selector.unregister(key.fileobj)
                    message = read_message(key.fd)
                    os.close(key.fd)
                    key.data(message)

    def _take_new(self) -> None:
        with self._lock:
            fresh, self._new = self._new, []
        for fd, on_message in fresh:
            self._selector.register(fd, selectors.EVENT_READ, on_message)
