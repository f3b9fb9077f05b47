"""Who is reached, and what is said where nobody is? Over the loopback of this machine."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest

from broadgauge.agent.preflight import pairs
from broadgauge.agent.preflight.pairs import NoListenerError, answering, call_all, listen
from broadgauge.messages.preflight import CallLimits, CheckedNic, PairResult

KEY = "a key of this run"
LIMIT_S = 300.0
PATIENT = CallLimits(one_s=LIMIT_S, all_s=LIMIT_S)


def nic_at(agent: int, server: socket.socket, number: int = 0) -> CheckedNic:
    address, port = server.getsockname()
    return CheckedNic(
        agent=agent, network="fabric", nic=number, interface="lo", address=address, port=port
    )


def run(keys: Sequence[str], num_nics: int = 1) -> list[PairResult]:
    """One agent for each key; all calls of all."""
    numbers = range(num_nics)
    servers = [[listen(f"127.{n + 1}.0.{a + 1}") for n in numbers] for a in range(len(keys))]
    nics = [[nic_at(a, each, n) for n, each in enumerate(own)] for a, own in enumerate(servers)]

    async def all_of_them() -> list[PairResult]:
        there = [nic for own in nics for nic in own]
        async with AsyncExitStack() as stack:
            for own, key in zip(servers, keys, strict=True):
                await stack.enter_async_context(answering(own, key, LIMIT_S))
            both = zip(nics, keys, strict=True)
            called = await asyncio.gather(
                *(call_all(own, there, key, PATIENT) for own, key in both)
            )
            return [result for each in called for result in each]

    try:
        return asyncio.run(all_of_them())
    finally:
        for own in servers:
            for each in own:
                each.close()


def test_every_agent_calls_every_other_one_over_each_nic() -> None:
    results = run([KEY] * 4, num_nics=2)
    assert {each.trouble for each in results} == {None}
    calls = {(each.caller, each.listener, each.nic) for each in results}
    assert len(calls) == len(results) == 4 * 3 * 2
    assert all(each.path_mtu_bytes for each in results)


def test_an_agent_of_another_run_is_a_stranger() -> None:
    bad = [each for each in run([KEY, KEY, KEY, "another's"]) if each.trouble is not None]
    assert {each.trouble for each in bad} == {pairs.STRANGER}
    assert all(3 in (each.caller, each.listener) for each in bad)
    assert len(bad) == 6


def call(there: CheckedNic, source: str = "127.1.0.2", limits: CallLimits = PATIENT) -> PairResult:
    own = CheckedNic(
        agent=1, network="fabric", nic=0, interface="lo", address=source, port=1, mtu_bytes=9000
    )
    (result,) = asyncio.run(call_all([own], [there], KEY, limits))
    return result


def test_nobody_listens_there() -> None:
    with listen("127.1.0.1") as server:
        there = nic_at(0, server)
    assert call(there).trouble == "Connection refused"
    assert call(there, source="192.0.2.1").trouble == "Cannot assign requested address"


def test_an_agent_that_does_not_answer_is_no_smaller_mtu() -> None:
    """The kernel takes connections for a process that hangs."""
    with listen("127.1.0.1") as silent:
        result = call(nic_at(0, silent), limits=CallLimits(one_s=2.0, all_s=LIMIT_S))
    assert result.trouble == "it connects, and the agent there does not answer in 2.0 s"


def test_what_is_late_is_not_tried() -> None:
    with listen("127.1.0.1") as server:
        result = call(nic_at(0, server), limits=CallLimits(one_s=LIMIT_S, all_s=-1.0))
    assert (result.is_tried, result.trouble) == (False, None)


def test_a_stranger_is_not_answered() -> None:
    async def ask(server: socket.socket, data: bytes) -> bytes:
        async with answering([server], KEY, LIMIT_S):
            reader, writer = await asyncio.open_connection(*server.getsockname())
            writer.write(data)
            writer.write_eof()
            try:
                return await reader.read()
            except ConnectionResetError:  # it did not read all that was sent
                return b""
            finally:
                writer.close()

    for data in (b"", b"GET / HTTP/1.1\r\n" * 9):
        with listen("127.1.0.1") as server:
            assert asyncio.run(ask(server, data)) == b""


def test_an_address_that_is_not_here_is_said() -> None:
    with pytest.raises(NoListenerError, match=r"192\.0\.2\.1 can't be listened on: Cannot assign"):
        listen("192.0.2.1")
