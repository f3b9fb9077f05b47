"""Do two sides on one machine find what its loopback carries, and is trouble told in time?

Facts are of streams that carry so many bytes in a second, by definition: what is summed, and who
says it, hangs on no rate then.
"""

import fcntl
import selectors
import socket
import struct
import termios
import time
from collections.abc import Callable
from functools import partial

import pytest
from tests.e2e.driving import wait_until

from broadgauge.agent import found_link
from broadgauge.agent.sides import SideFailed
from broadgauge.agent.supervisor.link_probes import probe_link
from broadgauge.agent.supervisor.measuring import LinkMeasuring
from broadgauge.messages.found_links import (
    CallOnLink,
    Endpoint,
    LinkProbe,
    LinkProbed,
    ListenOnLink,
    ListensOnLink,
)
from broadgauge.messages.payload import payload_rate_gbps

KEY = "k" * 32
STREAM_BYTES = 2**20
LIMIT_S = 300
"""Against hangs."""
Said = list[ListensOnLink | LinkProbed]


class Loop:
    """As a supervisor's: one selector, which must never be kept from looking."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.measuring = LinkMeasuring(self.selector)
        self.said: Said = []
        self.longest_turn_s = 0.0

    def begin(
        self, order: ListenOnLink | CallOnLink, interfaces: tuple[str, ...] = ("lo",)
    ) -> None:
        probing = probe_link(order, interfaces, self.said.append)
        self.measuring.begin(probing, self.said.append)

    def turn(self) -> None:
        begin_s = time.monotonic()
        for key, _ in self.selector.select(0.02):
            if self.measuring.is_of(key.data):
                self.measuring.listen()
        self.measuring.look_at_the_clock(time.monotonic())
        self.longest_turn_s = max(self.longest_turn_s, time.monotonic() - begin_s)

    def where(self) -> tuple[Endpoint, ...]:
        (listens,) = self.said
        assert isinstance(listens, ListensOnLink)
        return listens.endpoints


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No limit is of this machine's speed."""
    for name in ("CONNECT_LIMIT_S", "ACCEPT_LIMIT_S", "PROBE_LIMIT_S", "_PROOF_LIMIT_S"):
        monkeypatch.setattr(found_link, name, LIMIT_S)


@pytest.fixture
def counted_streams(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each carries its bytes and ends, in a second."""

    def send(connection: socket.socket, _end_s: float) -> None:
        connection.sendall(bytes(STREAM_BYTES))
        connection.shutdown(socket.SHUT_WR)

    def receive(connection: socket.socket, _begin_s: float, _end_s: float) -> dict[str, float]:
        total = 0
        while part := connection.recv(65_536):
            total += len(part)
        return {"measured_bytes": total, "start_s": 0.0, "end_s": 1.0}

    monkeypatch.setattr(found_link, "send_until", send)
    monkeypatch.setattr(found_link, "receive_between", receive)


def turn_until(is_done: Callable[[], bool], *loops: Loop) -> None:
    end_s = time.monotonic() + LIMIT_S
    while not is_done():
        assert time.monotonic() < end_s, [loop.said for loop in loops]
        for loop in loops:
            loop.turn()


def probe(num_streams: int, key: str = KEY) -> LinkProbe:
    return LinkProbe(number=7, key=key, num_streams=num_streams)


def measured(num_streams: int, interfaces: tuple[str, ...] = ("lo",)) -> tuple[LinkProbed, ...]:
    """What the listening side says in the end, and the calling one."""
    listening, calling = Loop(), Loop()
    listening.begin(ListenOnLink(probe=probe(num_streams)), interfaces)
    calling.begin(CallOnLink(probe=probe(num_streams), endpoints=listening.where()), interfaces)
    turn_until(lambda: len(listening.said) == 2 and len(calling.said) == 1, listening, calling)
    answers = (listening.said[1], calling.said[0])
    assert all(isinstance(each, LinkProbed) and each.number == 7 for each in answers)
    return answers  # type: ignore[return-value]


def loopback_gbps(num_streams: int) -> float:
    """Of so many streams' bytes, with the headers of full packets of 64 KiB."""
    return 8e-9 * num_streams * STREAM_BYTES / payload_rate_gbps(1.0, 65_536)


@pytest.mark.parametrize("num_streams", [1, 8])
def test_streams_are_counted_by_the_side_that_receives(
    counted_streams: None, num_streams: int
) -> None:
    listener, caller = measured(num_streams)
    assert (listener.trouble, caller.trouble) == (None, None)
    assert listener.stream_gbps == pytest.approx(loopback_gbps(num_streams), rel=0.01)
    assert caller.stream_gbps is listener.round_trip_s is None
    assert caller.congestion_control


@pytest.mark.measured
@pytest.mark.parametrize("num_streams", [1, 8])
def test_loopback_is_no_slow_network(num_streams: int) -> None:
    listener, _ = measured(num_streams)
    assert listener.stream_gbps is not None, listener.trouble
    assert listener.stream_gbps > 0.1


def test_a_round_trip_is_measured_by_the_side_that_asks(patient: None) -> None:
    listener, caller = measured(0)
    assert (listener.trouble, caller.trouble) == (None, None)
    assert caller.round_trip_s is not None
    assert caller.round_trip_s > 0
    assert listener.stream_gbps is listener.round_trip_s is None


@pytest.mark.measured
def test_a_round_trip_over_loopback_is_short() -> None:
    _, caller = measured(0)
    assert caller.round_trip_s is not None, caller.trouble
    assert caller.round_trip_s < 0.1


def test_streams_take_the_interfaces_in_turn(
    counted_streams: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"one": "127.0.0.1", "two": "127.0.0.2"}
    monkeypatch.setattr(found_link, "address_of", known.get)
    loop = Loop()
    loop.begin(ListenOnLink(probe=probe(2)), ("one", "two"))
    assert [each.address for each in loop.where()] == list(known.values())
    loop.measuring.drop()
    listener, _ = measured(2, ("one", "two"))
    assert listener.trouble is None
    assert listener.stream_gbps == pytest.approx(loopback_gbps(2), rel=0.01)


def test_an_interface_without_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_link, "address_of", lambda _: None)
    for order in (ListenOnLink(probe=probe(1)), CallOnLink(probe=probe(1), endpoints=())):
        loop = Loop()
        loop.begin(order, ("ib0",))
        turn_until(lambda: bool(loop.said), loop)  # noqa: B023  asked in this turn
        (told,) = loop.said
        assert isinstance(told, LinkProbed)
        assert "ib0 has no IPv4 address" in str(told.trouble)


def test_a_port_that_refuses_is_told_at_once() -> None:
    (server,) = found_link.listen(["lo"])
    where = found_link.endpoint(server)
    server.close()
    with pytest.raises(SideFailed, match=rf"does not reach 127.0.0.1 port {where.port}: .*refused"):
        found_link.call(["lo"], [where], probe(1))


def test_nobody_who_calls_is_told_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_link, "ACCEPT_LIMIT_S", 0.2)
    servers = found_link.listen(["lo"])
    with pytest.raises(SideFailed, match=r"nobody reached .* in 0\.2 s"):
        found_link.serve(servers, probe(1))
    found_link.close_all(servers)


def test_strangers_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One says something else, one hangs up, one says nothing: the true caller is heard, whose key
    has come before the first is looked at."""
    monkeypatch.setattr(found_link, "ACCEPT_LIMIT_S", LIMIT_S)
    monkeypatch.setattr(found_link, "_PROOF_LIMIT_S", 0.05)
    (server,) = found_link.listen(["lo"])
    join = partial(socket.create_connection, server.getsockname())
    with server, join() as wrong, join() as silent, join() as caller:
        wrong.sendall(b"x" * 32)
        join().close()
        caller.sendall(KEY.encode())
        wait_until(lambda: not unsent_bytes(caller))
        (heard,) = found_link._accept([server], KEY, 1)
        with heard:
            assert heard.getpeername() == caller.getsockname()
        assert silent.fileno() >= 0


def unsent_bytes(connection: socket.socket) -> int:
    """Which the other side's kernel has not acknowledged yet. Source: tcp(7), SIOCOUTQ."""
    told = fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4))
    return int(struct.unpack("i", told)[0])


@pytest.mark.measured
def test_strangers_keep_no_loop_from_looking() -> None:
    listening, calling = Loop(), Loop()
    listening.begin(ListenOnLink(probe=probe(0)))
    (there,) = listening.where()
    with socket.create_connection((there.address, there.port)):
        calling.begin(CallOnLink(probe=probe(0), endpoints=(there,)))
        turn_until(lambda: len(calling.said) == 1, listening, calling)
    assert listening.longest_turn_s < 1.0


def refuses(there: Endpoint) -> bool:
    """Does nobody listen there any more?"""
    try:
        socket.create_connection((there.address, there.port), timeout=5).close()
    except OSError:
        return True
    return False


def test_the_next_order_ends_a_child_that_still_waits() -> None:
    loop = Loop()
    loop.begin(ListenOnLink(probe=probe(1)))
    (first,) = loop.where()
    loop.begin(ListenOnLink(probe=probe(1)))
    assert len(loop.said) == 2
    wait_until(lambda: refuses(first))
    loop.measuring.drop()
    assert not loop.measuring.is_under_way
