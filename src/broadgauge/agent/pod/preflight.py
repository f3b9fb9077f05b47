"""Does each pod reach every other one over every NIC, before GPU hours are spent?

Each pod listens on the addresses of its networks (`open_listeners`); whoever leads tells all
addresses to all, and each pod plans its part (`plan_probes`) and calls (`run_probes`) while it
answers others. A connection begins with a key, is bound to the NIC's own address, and carries at
least 64 KiB there and back: packets of the largest size, which a wrong MTU on the way lets get
lost.
"""

import asyncio
import errno
import hmac
import os
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.resolve import ResolvedNetwork
from broadgauge.messages.frames import plain_line
from broadgauge.messages.preflight import PodAddress, Probe, ProbeResult, RdmaReadiness

LIMIT_S = 30.0
"""For all of a pod's probes together; what is not done by then was not tried."""
PROBE_LIMIT_S = 4.0
"""For one connection and its bytes, beside the time of its stream: what nobody answers the kernel
retransmits after 1 and 3 s, and a neighbour that is not there it gives up after 3 s. Source: RFC
6298, 2.1; arp(7), mcast_solicit and retrans_time."""
CALLS_AT_ONCE = 16
"""So that pods which do not answer cost the others their time limit once, not each in turn."""
NOT_TRIED = "not tried: the time for all probes had passed"
STRANGER = "who answers there is none of this run's pods, or has ended"
LEAST_BYTES = 64 * 1024
_BLOCK = bytes(256 * 1024)
_DIGEST = "sha256"
_SEAL_BYTES = 32
_VERDICT = struct.Struct("!QQ")
"""Bytes that came, and nanoseconds from the first to the last of them."""
_BACKLOG = 512
ACCEPT_AGAIN_S = 0.05
_PASSING = {
    *(errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENETDOWN, errno.ENETUNREACH),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENONET, errno.ENOPROTOOPT, errno.EOPNOTSUPP),
    *(errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM),
}
"""Of one connection, or until others have closed files. Source: accept(2), "Error handling"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """What a pod listens on. To be closed by who opened it."""

    addresses: tuple[PodAddress, ...]
    sockets: tuple[socket.socket, ...]

    def close(self) -> None:
        for each in self.sockets:
            each.close()


def open_listeners(node: int, networks: Sequence[ResolvedNetwork], facts: PodFacts) -> Listeners:
    """On each network's addresses, by ports that the kernel chooses. Raises OSError."""
    addresses: list[PodAddress] = []
    sockets: list[socket.socket] = []
    try:
        for network in networks:
            named = zip(network.interfaces, network.addresses, strict=True)
            for number, (interface, address) in enumerate(named):
                sockets.append(_listen(address))
                nic = facts.nic(interface)
                addresses.append(
                    PodAddress(
                        node=node,
                        network=network.name,
                        nic=number,
                        interface=interface,
                        address=address,
                        port=sockets[-1].getsockname()[1],
                        mtu_bytes=None if nic is None else nic.mtu_bytes,
                    )
                )
    except OSError:
        for each in sockets:
            each.close()
        raise
    return Listeners(addresses=tuple(addresses), sockets=tuple(sockets))


def _listen(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, 0), family=family, backlog=_BACKLOG)
    server.settimeout(0.0)
    return server


def rdma_readiness(node: int, network: ResolvedNetwork, facts: PodFacts) -> RdmaReadiness:
    """Of a network that was resolved: ports, GIDs, files and memory were looked at there."""
    rates = []
    for name in network.adapters:
        hca, _, number = name.partition(":")
        found = facts.hca(hca)
        ports = () if found is None else found.ports
        rates.append(next((p.rate_gbps for p in ports if str(p.number) == number), None))
    return RdmaReadiness(
        node=node,
        network=network.name,
        adapters=network.adapters,
        rates_gbps=tuple(rates),
        problems=network.problems,
    )


@asynccontextmanager
async def answering(listeners: Listeners, key: str) -> AsyncIterator[None]:
    """Answer the others' probes meanwhile. What ends that early stands in the pod's log."""
    tasks = [
        asyncio.create_task(_accept(server, key, f"{own.interface} ({own.address})"))
        for own, server in zip(listeners.addresses, listeners.sockets, strict=True)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_probes(
    probes: Sequence[Probe], key: str, limit_s: float = LIMIT_S
) -> tuple[ProbeResult, ...]:
    """Of one caller: first whom it reaches, several at once, who failed a second time, then the
    streams, one by one.

    Must run while all pods answer, and `answering` go on until all have ended.
    """
    end_s = time.monotonic() + limit_s
    at_once = asyncio.Semaphore(CALLS_AT_ONCE)

    async def reach(probe: Probe) -> ProbeResult:
        async with at_once:
            return await _in_time(replace(probe, stream_s=0.0), key, end_s)

    reached = list(await asyncio.gather(*map(reach, probes)))
    failed = [number for number, result in enumerate(reached) if not result.ok]
    again = await asyncio.gather(*(reach(probes[number]) for number in failed))
    for number, result in zip(failed, again, strict=True):
        if result.error != NOT_TRIED:
            reached[number] = result
    for number, probe in enumerate(probes):
        if probe.stream_s and reached[number].ok:
            reached[number] = await _in_time(probe, key, end_s)
    return tuple(reached)


async def _in_time(probe: Probe, key: str, end_s: float) -> ProbeResult:
    if time.monotonic() > end_s:
        return _result(probe, error=NOT_TRIED)
    return await _call(probe, key)


async def _call(probe: Probe, key: str) -> ProbeResult:
    family = socket.AF_INET6 if ":" in probe.address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as channel:
        channel.settimeout(0.0)
        stage = "no answer in {:g} s: a filter on the way, or no route back"
        try:
            async with _limit(PROBE_LIMIT_S + probe.stream_s):
                channel.bind((probe.source, 0))
                loop = asyncio.get_running_loop()
                await loop.sock_connect(channel, (probe.address, probe.port))
                stage = "connected, and no bytes in {:g} s: a smaller MTU on the way, or a filter"
                return await _send(probe, key, channel)
        except asyncio.TimeoutError:
            return _result(probe, error=stage.format(PROBE_LIMIT_S))
        except (ConnectionResetError, BrokenPipeError):
            return _result(probe, error=STRANGER)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            return _result(probe, error=why)


async def _send(probe: Probe, key: str, channel: socket.socket) -> ProbeResult:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(channel, _seal(key))
    begin_s = time.monotonic()
    sent = 0
    while sent < LEAST_BYTES or time.monotonic() - begin_s < probe.stream_s:
        block = _BLOCK if probe.stream_s else _BLOCK[:LEAST_BYTES]
        await loop.sock_sendall(channel, block)
        sent += len(block)
    channel.shutdown(socket.SHUT_WR)
    data = await _receive(channel, _VERDICT.size + LEAST_BYTES)
    if len(data) < _VERDICT.size + LEAST_BYTES:
        return _result(probe, error=STRANGER)
    came, lasted_ns = _VERDICT.unpack_from(data)
    if came != sent:
        return _result(probe, error=f"{came} of {sent} bytes arrived")
    rate = came / lasted_ns if probe.stream_s and lasted_ns else None
    return _result(probe, rate_gbyte_per_s=rate)


def _result(
    probe: Probe, *, error: str | None = None, rate_gbyte_per_s: float | None = None
) -> ProbeResult:
    return ProbeResult(
        caller=probe.caller,
        listener=probe.listener,
        network=probe.network,
        nic=probe.nic,
        ok=error is None,
        rate_gbyte_per_s=rate_gbyte_per_s,
        error=error,
    )


async def _accept(server: socket.socket, key: str, name: str) -> None:
    """Until it is cancelled, or the listener itself is broken."""
    loop = asyncio.get_running_loop()
    answers: set[asyncio.Task[None]] = set()
    try:
        while True:
            try:
                channel, _ = await loop.sock_accept(server)
            except OSError as error:
                if error.errno not in _PASSING:
                    why = error.strerror or str(error)
                    _say(f"preflight: {name} answers the other pods no more: {why}")
                    return
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            answer = asyncio.create_task(_answer(channel, key))
            answers.add(answer)
            answer.add_done_callback(answers.discard)
    finally:
        for answer in answers:
            answer.cancel()


async def _answer(channel: socket.socket, key: str) -> None:
    """Count what comes. A stranger is left without an answer."""
    with channel:
        channel.settimeout(0.0)
        try:
            async with _limit(PROBE_LIMIT_S):
                seal = await _receive(channel, _SEAL_BYTES)
            async with _limit(LIMIT_S):
                if hmac.compare_digest(seal, _seal(key)):
                    verdict = await _count(channel)
                    back = verdict + _BLOCK[:LEAST_BYTES]
                    await asyncio.get_running_loop().sock_sendall(channel, back)
        except (OSError, asyncio.TimeoutError):
            return  # the caller tells of it


async def _count(channel: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    buffer, came, first_ns, last_ns = bytearray(len(_BLOCK)), 0, 0, 0
    while size := await loop.sock_recv_into(channel, buffer):
        last_ns = time.monotonic_ns()
        first_ns = first_ns or last_ns
        came += size
    return _VERDICT.pack(came, last_ns - first_ns)


async def _receive(channel: socket.socket, size: int) -> bytes:
    """Fewer where the other side ends."""
    loop, data = asyncio.get_running_loop(), bytearray()
    while len(data) < size and (piece := await loop.sock_recv(channel, size - len(data))):
        data += piece
    return bytes(data)


def _seal(key: str) -> bytes:
    """What a connection begins with: the key itself is not sent."""
    return hmac.digest(key.encode(), b"broadgauge preflight", _DIGEST)


def _say(text: str) -> None:
    """A line of the pod's log."""
    sys.stderr.write(f"broadgauge: {plain_line(text)}\n")


@asynccontextmanager
async def _limit(seconds: float) -> AsyncIterator[None]:
    """asyncio.timeout, which Python 3.10 does not have. Raises asyncio.TimeoutError."""
    task = asyncio.current_task()
    assert task is not None
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    handle = asyncio.get_running_loop().call_later(seconds, expire)
    try:
        yield
    except asyncio.CancelledError:
        if expired:
            raise asyncio.TimeoutError from None
        raise
    finally:
        handle.cancel()
