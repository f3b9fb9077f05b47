"""How does a process of many threads start containers? It asks one that has a single thread.

The spawner is forked before the kubelet has threads or connections. For each order (JSON in a
memory file, with the descriptors of the pod's network namespace and of a status pipe) it forks a
keeper.
"""

import json
import os
import signal
import socket
import threading
from typing import Any

from tests.kubernetes.kubelet.keeper import keep_container

Json = dict[str, Any]


class Spawner:
    """The kubelet's side."""

    def __init__(self, ours: socket.socket, pid: int) -> None:
        self._socket, self.pid = ours, pid
        self._lock = threading.Lock()

    @classmethod
    def fork(cls) -> "Spawner":
        """Call it while the process has one thread."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            try:
                _serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        return cls(ours, pid)

    def spawn(self, order: Json, net_fd: int) -> int:
        """Start a container; gives the end of the status pipe to read."""
        memory = os.memfd_create("order")
        os.write(memory, json.dumps(order).encode())
        reading, writing = os.pipe()
        with self._lock:
            socket.send_fds(self._socket, [b"o"], [memory, net_fd, writing])
        os.close(memory)
        os.close(writing)
        return reading


def _serve(requests: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps keepers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        said, fds, _, _ = socket.recv_fds(requests, 1, 3)
        if not said:
            return
        memory, net_fd, status = fds
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.set_inheritable(status, False)
            order = json.loads(os.pread(memory, os.fstat(memory).st_size, 0))
            os.close(memory)
            try:
                keep_container(order, net_fd, status)
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)
