"""Does this machine reach every other one over every NIC, and do full packets come through?

Each agent listens on the addresses of its networks and calls all others, while it answers them. A
connection begins with a proof of the key, which is answered with one byte: then the agent there is
at work, and small packets come through. 64 KiB there and back follow: many packets of the largest
size, which a smaller MTU on the way lets get lost. Both ends are the NICs' own addresses; which NIC
bytes leave by is the kernel's to choose, as it is for those of ranks.
"""

import asyncio
import hmac
import os
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from broadgauge.messages.preflight import CallLimits, CheckedNic, PairResult
from broadgauge.messages.within import within

BYTES = 64 * 1024
"""Forty packets at MTU 1500, seven at 9000."""
CALLS_AT_ONCE = 16
"""So that machines which do not answer cost their time limit once, not each in turn."""
STRANGER = "who answers there is none of this run's agents, or has ended"
_PROOF_BYTES = 32
_HERE = b"!"
_BLOCK = bytes(BYTES)
_BACKLOG = 512
_IP_MTU = 14
"""Source: Linux, include/uapi/linux/in.h."""


class NoListenerError(Exception):
    """An address can't be listened on, and why."""


def listen(address: str) -> socket.socket:
    """On a port that the kernel chooses. Raises NoListenerError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, 0), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = error.strerror or str(error)
        raise NoListenerError(f"{address} can't be listened on: {why}") from error
    server.settimeout(0.0)
    return server


@asynccontextmanager
async def answering(
    servers: Sequence[socket.socket], key: str, limit_s: float
) -> AsyncIterator[None]:
    """Answer the others' calls meanwhile, none of them for longer than this."""
    answers: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = asyncio.create_task(_answer(key, limit_s, reader, writer))
        answers.add(answer)
        answer.add_done_callback(answers.discard)

    doors: list[asyncio.Server] = []
    try:
        for server in servers:
            doors.append(await asyncio.start_server(begin, sock=server.dup(), backlog=_BACKLOG))
        yield
    finally:
        for door in doors:
            door.close()
        for answer in answers:
            answer.cancel()


async def call_all(
    own: Sequence[CheckedNic], others: Sequence[CheckedNic], key: str, limits: CallLimits
) -> tuple[PairResult, ...]:
    """Over each of this agent's NICs every other agent's NIC of that network and number; several at
    once, and those that failed a second time.

    Must run while all agents answer.
    """
    end_s = time.monotonic() + limits.all_s
    at_once = asyncio.Semaphore(CALLS_AT_ONCE)

    async def reach(pair: tuple[CheckedNic, CheckedNic]) -> PairResult:
        async with at_once:
            if time.monotonic() > end_s:
                return _result(*pair, is_tried=False)
            return await _call(*pair, key, limits.one_s)

    pairs = _pairs(own, others)
    found = dict(enumerate(await asyncio.gather(*map(reach, pairs))))
    failed = [number for number, result in found.items() if result.trouble is not None]
    again = await asyncio.gather(*(reach(pairs[number]) for number in failed))
    for number, result in zip(failed, again, strict=True):
        if result.is_tried:
            found[number] = result
    return tuple(found.values())


def _pairs(
    own: Sequence[CheckedNic], others: Sequence[CheckedNic]
) -> list[tuple[CheckedNic, CheckedNic]]:
    """Each machine by one NIC before any by another, and each agent begins with the one after it,
    so that not all call the first at once."""
    here = {(nic.network, nic.nic): nic for nic in own}
    pairs = [
        (here[there.network, there.nic], there)
        for there in others
        if (there.network, there.nic) in here
    ]
    calls = [(mine, there) for mine, there in pairs if mine.agent != there.agent]
    return sorted(
        calls, key=lambda pair: (pair[0].nic, pair[1].agent < pair[0].agent, pair[1].agent)
    )


async def _call(own: CheckedNic, there: CheckedNic, key: str, limit_s: float) -> PairResult:
    try:
        family = socket.AF_INET6 if ":" in there.address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as channel:
            channel.settimeout(0.0)
            call = _OneCall(channel, own, there)
            try:
                came = await within(limit_s, call.run(key))
            except asyncio.TimeoutError:
                return _result(own, there, call.stalled_words(limit_s))
            if came < BYTES:
                return _result(own, there, STRANGER)
            return _result(own, there, path_mtu_bytes=_path_mtu(channel))
    except (ConnectionResetError, BrokenPipeError):
        return _result(own, there, STRANGER)
    except OSError as error:
        return _result(own, there, os.strerror(error.errno) if error.errno else str(error))


class _OneCall:
    """How far it has come says what is wrong where it stops."""

    def __init__(self, channel: socket.socket, own: CheckedNic, there: CheckedNic) -> None:
        self._channel, self._own, self._there = channel, own, there
        self._is_connected = self._is_answered = False

    async def run(self, key: str) -> int:
        """How many bytes came back. Raises OSError."""
        loop, channel = asyncio.get_running_loop(), self._channel
        channel.bind((self._own.address, 0))
        await loop.sock_connect(channel, (self._there.address, self._there.port))
        self._is_connected = True
        await loop.sock_sendall(channel, _proof(key))
        if not await loop.sock_recv(channel, len(_HERE)):
            return 0
        self._is_answered = True
        await loop.sock_sendall(channel, _BLOCK)
        channel.shutdown(socket.SHUT_WR)
        came = 0
        while came < BYTES and (piece := await loop.sock_recv(channel, BYTES)):
            came += len(piece)
        return came

    def stalled_words(self, limit_s: float) -> str:
        """Why it did not end in time."""
        if not self._is_connected:
            return f"no answer in {limit_s:.1f} s: a filter on the way, or no route back"
        if not self._is_answered:
            return f"it connects, and the agent there does not answer in {limit_s:.1f} s"
        mtu = "" if self._own.mtu_bytes is None else f" (MTU {self._own.mtu_bytes})"
        return (
            f"small packets pass, and full ones{mtu} don't in {limit_s:.1f} s: something on the "
            "way has a smaller MTU"
        )


def _path_mtu(channel: socket.socket) -> int | None:
    """Source: ip(7), IP_MTU: of a connected socket, the path's as it is known."""
    if channel.family != socket.AF_INET:
        return None
    return channel.getsockopt(socket.IPPROTO_IP, _IP_MTU)


def _result(
    own: CheckedNic,
    there: CheckedNic,
    trouble: str | None = None,
    *,
    is_tried: bool = True,
    path_mtu_bytes: int | None = None,
) -> PairResult:
    return PairResult(
        caller=own.agent,
        listener=there.agent,
        network=own.network,
        nic=own.nic,
        is_tried=is_tried,
        trouble=trouble,
        path_mtu_bytes=path_mtu_bytes,
    )


async def _answer(
    key: str, limit_s: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """With as many bytes as came. A stranger is left without an answer."""
    try:
        await within(limit_s, _send_back(key, reader, writer))
    except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
        return  # the caller tells of it
    finally:
        writer.close()


async def _send_back(key: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    proof = await reader.readexactly(_PROOF_BYTES)
    if hmac.compare_digest(proof, _proof(key)):
        writer.write(_HERE)
        await reader.readexactly(BYTES)
        writer.write(_BLOCK)
        await writer.drain()


def _proof(key: str) -> bytes:
    """What a connection begins with: the key itself is not sent."""
    return hmac.digest(key.encode(), b"broadgauge preflight", "sha256")
