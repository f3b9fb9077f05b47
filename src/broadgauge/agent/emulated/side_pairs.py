"""How do two processes, one in each of two nodes, work together? As sides do (agent/sides.py)."""

import os
import struct
from collections.abc import Callable

from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.nodes import Node
from broadgauge.agent.sides import (
    Figures,
    OtherSideGone,
    Side,
    SideFailed,
    end_side,
    fork_side,
    gather,
    write_all,
)

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
        gather([*servers, *callers], callers if ends_with_caller else [*servers, *callers])
    except SideFailed as failure:
        raise EmulationError(
            "probe the link between two nodes",
            str(failure),
            error_number=None,
            hint="is the receiving node's firewall or memory at fault? Both run on this host",
        ) from failure
    finally:
        for side in (*servers, *callers):
            end_side(side)
    served = [{} if ends_with_caller else side.figures() for side in servers]
    return [(side.figures(), each) for side, each in zip(callers, served, strict=True)]


def _caller(call: Call, address: str, port_in: int, port_out: int) -> Callable[[], Figures]:
    def work() -> Figures:
        os.close(port_out)  # else this process itself would keep the pipe from ending
        said = os.read(port_in, 2)
        if len(said) < 2:
            raise OtherSideGone("the other side ended before it listened")
        (port,) = struct.unpack("=H", said)
        return call(address, port)

    return work


def _server(serve: Serve, address: str, port_in: int, port_out: int) -> Callable[[], Figures]:
    def work() -> Figures:
        os.close(port_in)

        def tell_port(port: int) -> None:
            try:
                write_all(port_out, struct.pack("=H", port))
            except BrokenPipeError:
                raise OtherSideGone("the other side ended before it called") from None

        return serve(address, tell_port)

    return work


def _fork_into(node: Node, work: Callable[[], Figures]) -> Side:
    """Run `work` in a child inside `node`."""

    def work_there() -> Figures:
        node.enter()
        return work()

    return fork_side(work_there)
