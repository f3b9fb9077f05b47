"""What does the network between two hosts carry? The two sides of its measurement.

Each is called in a child process, whose limit bounds what has none of its own here. Streams have a
process each on both sides, as between emulated nodes. A round trip is one byte's over a connection
that stands: where a firewall lets one kind of packet through it is TCP's.
"""

import hmac
import socket
import time
from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from statistics import median

from broadgauge.agent.addresses import address_of
from broadgauge.agent.sides import Figures, Side, SideFailed, end_side, fork_side, gather
from broadgauge.agent.streams import receive_between, send_until, sum_gbps
from broadgauge.messages.found_links import Endpoint, LinkProbe
from broadgauge.messages.payload import TCP_IP_HEADER_BYTES, payload_rate_gbps
from broadgauge.messages.waiting_limits import waiting_limit_s

CONNECT_LIMIT_S = waiting_limit_s(4.0)
"""A firewall that drops what comes says nothing: the kernel asks again after 1 and 3 s."""
ACCEPT_LIMIT_S = waiting_limit_s(8.0)
"""For the leader to tell the other agent, and that one to call."""
PROBE_LIMIT_S = waiting_limit_s(12.0)
"""For all that a side does in one measurement."""
_PROOF_LIMIT_S = waiting_limit_s(2.0)
_WARM_UP_S = 0.2
"""Over a round trip of 10 ms a window still grows for ten of them."""
_STREAM_S = 0.2
_SLACK_S = waiting_limit_s(1.0)
"""The receiver's time begins when it has heard all senders, and it ends the streams."""
NUM_ROUND_TRIPS = 211
"""As between emulated nodes: a prime, to be recognised in another tool's output."""
_NUM_WARM_UP_ROUND_TRIPS = 23
_ROUND_TRIPS_S = 2.0


def listen(interfaces: Sequence[str]) -> list[socket.socket]:
    """A server on the address of each. Raises SideFailed."""
    servers: list[socket.socket] = []
    try:
        servers.extend(socket.create_server((each, 0)) for each in addresses_of(interfaces))
    except OSError as error:
        close_all(servers)
        raise SideFailed(f"no port to listen on: {error.strerror or error}") from error
    return servers


def addresses_of(interfaces: Sequence[str]) -> list[str]:
    """Raises SideFailed where one has none, or there is no interface."""
    found = []
    for interface in interfaces:
        address = address_of(interface)
        if address is None:
            raise SideFailed(f"{socket.gethostname()}: {interface} has no IPv4 address")
        found.append(address)
    if not found:
        raise SideFailed(f"{socket.gethostname()} was told no interface of the network")
    return found


def close_all(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()


def endpoint(server: socket.socket) -> Endpoint:
    address, port = server.getsockname()
    return Endpoint(address=address, port=port)


def serve(servers: Sequence[socket.socket], probe: LinkProbe) -> Figures:
    """The listening side: the rate that arrives at least, on the wire. Raises SideFailed."""
    connections = _accept(servers, probe.key, max(1, probe.num_streams))
    if probe.num_streams == 0:
        _echo(connections[0])
        return {}
    begin_s = time.monotonic() + _WARM_UP_S
    mss_bytes = connections[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    received = _side_by_side(
        [partial(receive_between, each, begin_s, begin_s + _STREAM_S) for each in connections]
    )
    # Source: tcp(7): TCP_MAXSEG is what a segment holds, options taken off.
    wire_ratio = payload_rate_gbps(1.0, mss_bytes + TCP_IP_HEADER_BYTES)
    return {"stream_gbps": sum_gbps(received) / wire_ratio}


def call(interfaces: Sequence[str], endpoints: Sequence[Endpoint], probe: LinkProbe) -> Figures:
    """The other side: how long one byte's way is there and back. Raises SideFailed."""
    number = max(1, probe.num_streams)
    sources = islice(cycle(addresses_of(interfaces)), number)
    there = islice(cycle(endpoints), number)
    connections = [_connect(*ends, probe.key) for ends in zip(sources, there, strict=True)]
    if probe.num_streams == 0:
        return {"round_trip_s": _ask(connections[0])}
    end_s = time.monotonic() + _WARM_UP_S + _STREAM_S + _SLACK_S
    _side_by_side([partial(_send, each, end_s) for each in connections])
    return {}


def _connect(source: str, there: Endpoint, key: str) -> socket.socket:
    try:
        connection = socket.create_connection(
            (there.address, there.port), timeout=CONNECT_LIMIT_S, source_address=(source, 0)
        )
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(key.encode())
    except OSError as error:
        why = error.strerror or f"no answer in {CONNECT_LIMIT_S:g} s"
        raise SideFailed(
            f"{socket.gethostname()} ({source}) does not reach {there.address} port {there.port}: "
            f"{why}"
        ) from error
    connection.settimeout(None)
    return connection


def _accept(servers: Sequence[socket.socket], key: str, number: int) -> list[socket.socket]:
    """So many connections that begin with the key, of each server in turn. Raises SideFailed."""
    end_s = time.monotonic() + ACCEPT_LIMIT_S
    found: list[socket.socket] = []
    while len(found) < number:
        server = servers[len(found) % len(servers)]
        connection = _accept_by(server, end_s)
        if connection is None:
            where = endpoint(server)
            raise SideFailed(
                f"nobody reached {socket.gethostname()} at {where.address} port {where.port} "
                f"in {ACCEPT_LIMIT_S:g} s"
            )
        if _knows(connection, key):
            found.append(connection)
        else:
            connection.close()
    return found


def _accept_by(server: socket.socket, end_s: float) -> socket.socket | None:
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        return None
    server.settimeout(left_s)
    try:
        return server.accept()[0]
    except TimeoutError:
        return None


def _knows(connection: socket.socket, key: str) -> bool:
    """Is it the other agent?"""
    connection.settimeout(_PROOF_LIMIT_S)
    told = b""
    try:
        while len(told) < len(key):
            part = connection.recv(len(key) - len(told))
            if not part:
                return False
            told += part
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        return False
    connection.settimeout(None)
    return hmac.compare_digest(told, key.encode())


def _side_by_side(works: Sequence[partial[Figures]]) -> list[Figures]:
    sides: list[Side] = []
    try:
        sides.extend(fork_side(work) for work in works)
        gather(sides, sides)
        return [side.figures() for side in sides]
    finally:
        for side in sides:
            end_side(side)


def _send(connection: socket.socket, end_s: float) -> Figures:
    send_until(connection, end_s)
    return {}


def _echo(connection: socket.socket) -> None:
    """Until the other side has asked enough."""
    try:
        while byte := connection.recv(1):
            connection.sendall(byte)
    except ConnectionError:
        pass  # as at its end


def _ask(connection: socket.socket) -> float:
    """The median of up to 211 exchanges, in two seconds or so. Raises SideFailed."""
    samples: list[float] = []
    begin_s = now_s = time.perf_counter()
    while len(samples) < _NUM_WARM_UP_ROUND_TRIPS + NUM_ROUND_TRIPS:
        connection.sendall(b"?")
        if not connection.recv(1):
            raise SideFailed("the other side ended while the round trip was measured")
        before_s, now_s = now_s, time.perf_counter()
        samples.append(now_s - before_s)
        if now_s - begin_s > _ROUND_TRIPS_S:
            break
    warm_up = min(_NUM_WARM_UP_ROUND_TRIPS, len(samples) // 10)
    return median(samples[warm_up:])
