"""How is a TCP connection between two nodes put to work? A process at each end, forked, waited for.

A link may be slow and lose half of its packets, and a side may fail: the caller tries again as
long as it may, and where one side ends with an error the others are ended and the error is told.
"""

import json
import os
import select
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from broadgauge.platforms.emulated.errors import EmulationError
from broadgauge.platforms.emulated.nodes import Node

CONNECT_S = 60.0
"""A link may delay each packet by 10 s, and TCP's handshake takes two of them to be known here."""
_CONNECT_EVERY_S = 1.0
"""A handshake that lost a packet waits ever longer to send it again: another one is begun."""

Work = Callable[[socket.socket], dict[str, float]]
"""One side's part, given its end of the connection. The side that calls must speak first."""


def run_pairs(
    sender: Node, receiver: Node, send: Work, receive: Work, num_pairs: int
) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Run `send` and `receive` in their nodes, `num_pairs` times at once, each pair connected.

    Pairs are dealt out over the nodes' NICs. Raises EmulationError where a side fails.
    """
    senders, receivers = [], []
    for number in range(num_pairs):
        address = receiver.nics[number % len(receiver.nics)].address
        port_in, port_out = os.pipe()

        def call(address: str = address, fds: tuple[int, int] = (port_in, port_out)) -> Any:
            os.close(fds[1])  # else this process itself would keep the pipe from ending
            return _call(address, fds[0], send)

        def serve(address: str = address, fds: tuple[int, int] = (port_in, port_out)) -> Any:
            os.close(fds[0])
            return _serve(address, fds[1], receive)

        senders.append(_fork_into(sender, call))
        receivers.append(_fork_into(receiver, serve))
        os.close(port_in)
        os.close(port_out)
    results = _gather([*receivers, *senders])
    return list(zip(results[num_pairs:], results[:num_pairs], strict=True))


def _serve(address: str, port_fd: int, work: Work) -> dict[str, float]:
    with socket.create_server((address, 0)) as server:
        os.write(port_fd, struct.pack("=H", server.getsockname()[1]))
        connection = _first_to_speak(server, time.monotonic() + CONNECT_S)
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return work(connection)


def _call(address: str, port_fd: int, work: Work) -> dict[str, float]:
    said = os.read(port_fd, 2)
    if len(said) < 2:
        raise ConnectionError("the other side ended before it listened")
    (port,) = struct.unpack("=H", said)
    with _connect(address, port, time.monotonic() + CONNECT_S) as connection:
        connection.setblocking(True)  # noqa: FBT003
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return work(connection)


def _connect(address: str, port: int, deadline_s: float) -> socket.socket:
    """The first of several attempts that succeeds, a new one each second. Raises TimeoutError."""
    attempts: dict[int, socket.socket] = {}
    poller = select.poll()
    next_s = time.monotonic()
    try:
        while (now_s := time.monotonic()) < deadline_s:
            if now_s >= next_s:
                attempt = socket.socket()
                attempt.setblocking(False)  # noqa: FBT003
                attempt.connect_ex((address, port))
                attempts[attempt.fileno()] = attempt
                poller.register(attempt.fileno(), select.POLLOUT)
                next_s = now_s + _CONNECT_EVERY_S
            for fd, _ in poller.poll(max(1.0, 1000 * (next_s - now_s))):
                poller.unregister(fd)
                attempt = attempts.pop(fd)
                if attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    return attempt
                attempt.close()
    finally:
        for attempt in attempts.values():
            attempt.close()
    raise TimeoutError(f"no connection to {address} in {CONNECT_S:g} s")


def _first_to_speak(server: socket.socket, deadline_s: float) -> socket.socket:
    """The connection that the caller took: its attempts that came too late say nothing."""
    silent: dict[int, socket.socket] = {}
    poller = select.poll()
    poller.register(server.fileno(), select.POLLIN)
    try:
        while (now_s := time.monotonic()) < deadline_s:
            for fd, _ in poller.poll(1000 * (deadline_s - now_s)):
                if fd == server.fileno():
                    connection, _ = server.accept()
                    silent[connection.fileno()] = connection
                    poller.register(connection.fileno(), select.POLLIN)
                    continue
                poller.unregister(fd)
                connection = silent.pop(fd)
                with suppress(ConnectionError):
                    if connection.recv(1, socket.MSG_PEEK):
                        return connection
                connection.close()
    finally:
        for connection in silent.values():
            connection.close()
    raise TimeoutError(f"no connection from the other side in {CONNECT_S:g} s")


@dataclass(slots=True, kw_only=True)
class _Side:
    """One process of a pair, and what it has answered so far."""

    pid: int
    result_fd: int
    answer: bytearray = field(default_factory=bytearray)

    def failure(self) -> str | None:
        """Why did it fail, in a line? Asked when it has ended."""
        if not self.answer:
            return "it was killed"
        error: str | None = self._decoded().get("error")
        return None if error is None else error.strip().splitlines()[-1]

    def result(self) -> dict[str, float]:
        found: dict[str, float] = self._decoded()["result"]
        return found

    def _decoded(self) -> Mapping[str, Any]:
        decoded: Mapping[str, Any] = json.loads(self.answer)
        return decoded


def _fork_into(node: Node, work: Callable[[], dict[str, float]]) -> _Side:
    """Run `work` in a child inside `node`."""
    result_in, result_out = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(result_out)
        return _Side(pid=pid, result_fd=result_in)
    try:
        node.enter()
        answer: dict[str, object] = {"result": work()}
    except BaseException:  # noqa: BLE001  a forked child must never run its parent's code on
        answer = {"error": traceback.format_exc()}
    os.write(result_out, json.dumps(answer).encode())
    os._exit("error" in answer)


def _gather(sides: Sequence[_Side]) -> list[dict[str, float]]:
    """Each side's result, in their order. Raises EmulationError for the first that failed.

    A receiver that fails is heard no later than the sender that misses it: it comes first here.
    """
    try:
        waiting = {side.result_fd: side for side in sides}
        poller = select.poll()
        for fd in waiting:
            poller.register(fd, select.POLLIN)
        while waiting:
            ended = []
            for fd, _ in poller.poll():
                data = os.read(fd, 1 << 16)
                if data:
                    waiting[fd].answer += data
                else:
                    poller.unregister(fd)
                    ended.append(waiting.pop(fd))
            failures = [side.failure() for side in sides if side in ended]
            for failure in filter(None, failures):
                raise EmulationError(
                    "probe the link by a TCP stream",
                    failure,
                    error_number=None,
                    hint="is the receiving node's firewall or memory at fault? Both run on this "
                    "host",
                )
        return [side.result() for side in sides]
    finally:
        for side in sides:
            _end(side)


def _end(side: _Side) -> None:
    """Nothing of it is left afterwards."""
    os.close(side.result_fd)
    # Whoever else reaps the children of this process may have done so already.
    with suppress(ProcessLookupError):
        os.kill(side.pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(side.pid, 0)
