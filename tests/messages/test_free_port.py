"""Is a port for ranks to meet on free, and out of the way of connections that begin?"""

import socket
from pathlib import Path

import pytest

from broadgauge.messages import free_port as module
from broadgauge.messages.free_port import free_port


def test_it_can_be_listened_on_and_is_no_ephemeral_one() -> None:
    port = free_port("127.0.0.1")
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert 1024 <= port < max(first, 32_768)
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_one_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", free_port("127.0.0.1"))) as server:
        taken = server.getsockname()[1]
        tried = iter([taken, taken, free_port("127.0.0.1")])
        monkeypatch.setattr(module.random, "randrange", lambda first, end: next(tried))
        assert free_port("127.0.0.1") != taken


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(OSError, match="assign"):
        free_port("192.0.2.1")
