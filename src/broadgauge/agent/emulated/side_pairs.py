"""How do two processes, one in each of two nodes, work together? Forked, waited for, ended.

Where one side fails the others are ended and its error is told: no side waits for one that is gone.
"""

import json
import os
import select
import signal
import struct
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.nodes import Node

Figures = dict[str, float]
TellPort = Callable[[int], None]
Serve = Callable[[str, TellPort], Figures]
"""Given its address; tells the other side the port that it listens on."""
Call = Callable[[str, int], Figures]
"""Given the other side's address and port."""


def run_pairs(
    caller: Node,
    server: Node,
    call: Call,
    serve: Serve,
    *,
    num_pairs: int = 1,
    ends_with_caller: bool = False,
) -> list[tuple[Figures, Figures]]:
    """Run `call` and `serve` in their nodes, `num_pairs` times at once, over their NICs in turn.

    `ends_with_caller`: the servers would go on for ever, and have no figures. Raises EmulationError
    where a side fails.
    """
    callers, servers = [], []
    for number in range(num_pairs):
        address = server.nics[number % len(server.nics)].address
        port_in, port_out = os.pipe()
        callers.append(_fork_into(caller, _caller(call, address, port_in, port_out)))
        servers.append(_fork_into(server, _server(serve, address, port_in, port_out)))
        os.close(port_in)
        os.close(port_out)
    try:
        _gather([*servers, *callers], callers if ends_with_caller else [*servers, *callers])
    finally:
        for side in (*servers, *callers):
            _end(side)
    served = [{} if ends_with_caller else side.figures() for side in servers]
    return [(side.figures(), each) for side, each in zip(callers, served, strict=True)]


def _caller(call: Call, address: str, port_in: int, port_out: int) -> Callable[[], Figures]:
    def work() -> Figures:
        os.close(port_out)  # else this process itself would keep the pipe from ending
        said = os.read(port_in, 2)
        if len(said) < 2:
            raise _OtherSideGone("the other side ended before it listened")
        (port,) = struct.unpack("=H", said)
        return call(address, port)

    return work


def _server(serve: Serve, address: str, port_in: int, port_out: int) -> Callable[[], Figures]:
    def work() -> Figures:
        os.close(port_in)

        def tell_port(port: int) -> None:
            try:
                _write_all(port_out, struct.pack("=H", port))
            except BrokenPipeError:
                raise _OtherSideGone("the other side ended before it called") from None

        return serve(address, tell_port)

    return work


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


class _OtherSideGone(Exception):  # noqa: N818  says what is so, and why is the other's to say
    """A side missed the other one, whose own error is the one to tell."""


@dataclass(slots=True, kw_only=True)
class _Side:
    """One process of a pair, and what it has answered so far."""

    pid: int
    result_fd: int
    said: bytearray = field(default_factory=bytearray)

    def failure(self) -> str | None:
        """Why did it fail, in a line? Asked when it has ended. None: it did not, by itself."""
        if not self.said:
            return "it was killed"
        error: str | None = json.loads(self.said).get("error")
        return error

    @property
    def has_missed_the_other(self) -> bool:
        return b'"is_gone"' in self.said

    def figures(self) -> Figures:
        found: Figures = json.loads(self.said)["figures"]
        return found


def _fork_into(node: Node, work: Callable[[], Figures]) -> _Side:
    """Run `work` in a child inside `node`."""
    result_in, result_out = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(result_out)
        return _Side(pid=pid, result_fd=result_in)
    try:
        node.enter()
        answer: dict[str, Any] = {"figures": work()}
    except _OtherSideGone:
        answer = {"is_gone": True}
    except BaseException as error:  # noqa: BLE001  a forked child must never run its parent's code
        answer = {"error": first_line(error)}
    _write_all(result_out, json.dumps(answer).encode())
    os._exit("figures" not in answer)


def first_line(error: BaseException) -> str:
    """What kind of error, and what it says, without its hint."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[0]


def _gather(sides: Sequence[_Side], awaited: Sequence[_Side]) -> None:
    """Hear all sides until those awaited have ended. Raises EmulationError for one that failed.

    Where a side has missed the other, the other has ended, and is heard as well.
    """
    waiting = {side.result_fd: side for side in sides}
    poller = select.poll()
    for fd in waiting:
        poller.register(fd, select.POLLIN)
    is_missed = False
    while waiting and (is_missed or any(side.result_fd in waiting for side in awaited)):
        ended = []
        for fd, _ in poller.poll():
            data = os.read(fd, 1 << 16)
            if data:
                waiting[fd].said += data
            else:
                poller.unregister(fd)
                ended.append(waiting.pop(fd))
        is_missed |= any(side.has_missed_the_other for side in ended)
        failures = [side.failure() for side in ended]
        for failure in filter(None, failures):
            raise EmulationError(
                "probe the link between two nodes",
                failure,
                error_number=None,
                hint="is the receiving node's firewall or memory at fault? Both run on this host",
            )


def _end(side: _Side) -> None:
    """Nothing of it is left afterwards."""
    os.close(side.result_fd)
    with suppress(ProcessLookupError):
        os.kill(side.pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # where another part of this process reaps all children
        os.waitpid(side.pid, 0)
