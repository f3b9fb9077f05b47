"""What does an agent do in a preflight? It says what it is, listens, and calls all others."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from broadgauge.agent.addresses import mtu_of
from broadgauge.agent.preflight.machine import software_here
from broadgauge.agent.preflight.pairs import NoListenerError, answering, call_all, listen
from broadgauge.messages.hardware import HardwareFacts, NicFacts
from broadgauge.messages.preflight import (
    CallOthers,
    CheckedNetwork,
    CheckedNic,
    ClosePreflight,
    NetworkHere,
    OpenPreflight,
    OthersCalled,
    PreflightOpened,
    PreflightOrder,
)

LOOK_RATIO = 0.5
"""Of the time to open, for networks that are still to come; nvidia-smi has the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUpNetwork:
    """What a network is on this machine."""

    name: str
    interfaces: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """One of each, without prefix; empty: it has none."""
    problems: tuple[str, ...] = ()
    unknown: str | None = None
    is_rdma: bool = False
    port_rates_gbps: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUpMachine:
    """This machine, and the networks that were asked for, in their order."""

    hardware: HardwareFacts
    networks: tuple[LookedUpNetwork, ...]


Look = Callable[[tuple[CheckedNetwork, ...], float], LookedUpMachine]
"""Finds the networks, in so many seconds where one of them is not there at once."""
Answer = PreflightOpened | OthersCalled
T = TypeVar("T")


class AgentPreflight:
    """One agent's side of it."""

    def __init__(self, agent: int, look: Look, send: Callable[[Answer], None]) -> None:
        """`look` is called in a thread."""
        self._agent = agent
        self._look = look
        self._send = send
        self._nics: tuple[CheckedNic, ...] = ()
        self._servers: list[socket.socket] = []
        self._task: asyncio.Task[None] | None = None
        """What the last order began."""

    async def obey(self, order: PreflightOrder) -> None:
        """Begin what the leader says next; what was begun before is ended."""
        await self._end_task()
        if isinstance(order, OpenPreflight):
            self._close_servers()
            self._task = asyncio.create_task(self._open(order))
        elif isinstance(order, CallOthers):
            self._task = asyncio.create_task(self._call(order))
        else:
            assert isinstance(order, ClosePreflight)
            self._close_servers()

    async def close(self) -> None:
        """Answer nobody any more."""
        await self._end_task()
        self._close_servers()

    async def _open(self, order: OpenPreflight) -> None:
        answer: PreflightOpened
        try:
            answer = await self._opened(order)
        except Exception as error:  # noqa: BLE001  it is told, and costs no launch
            answer = PreflightOpened(number=order.number, trouble=_words(error))
        self._send(answer)

    async def _opened(self, order: OpenPreflight) -> PreflightOpened:
        look_s = LOOK_RATIO * order.limit_s
        found = await _in_thread(lambda: self._look(order.networks, look_s))
        nics = {nic.name: nic for nic in found.hardware.nics}
        opened = [self._listen_on(each, nics) for each in found.networks]
        self._nics = tuple(nic for listening, _ in opened for nic in listening)
        ask_s = order.limit_s - look_s
        return PreflightOpened(
            number=order.number,
            nics=self._nics,
            networks=tuple(here for _, here in opened),
            software=await _in_thread(lambda: software_here(found.hardware, ask_s)),
        )

    def _listen_on(
        self, network: LookedUpNetwork, nics: dict[str, NicFacts]
    ) -> tuple[list[CheckedNic], NetworkHere]:
        listening, problems = [], list(network.problems)
        named = zip(network.interfaces, network.addresses, strict=True)
        for number, (interface, address) in enumerate(named):
            nic = nics.get(interface)
            if nic is not None and nic.state == "down":
                problems.append(f"{interface} is down")
            try:
                if not address:
                    raise NoListenerError(f"{interface} has no IP address")
                server = listen(address)
            except NoListenerError as error:
                problems.append(str(error))
                continue
            self._servers.append(server)
            listening.append(
                CheckedNic(
                    agent=self._agent,
                    network=network.name,
                    nic=number,
                    interface=interface,
                    address=address,
                    port=server.getsockname()[1],
                    mtu_bytes=mtu_of(interface),
                    speed_mbps=None if nic is None else nic.speed_mbps,
                )
            )
        here = NetworkHere(
            agent=self._agent,
            network=network.name,
            problems=tuple(dict.fromkeys(problems)),
            unknown=network.unknown,
            is_rdma=network.is_rdma,
            port_rates_gbps=network.port_rates_gbps,
        )
        return listening, here

    async def _call(self, order: CallOthers) -> None:
        try:
            async with answering(self._servers, order.key, order.limits.all_s):
                results = await call_all(self._nics, order.nics, order.key, order.limits)
                self._send(OthersCalled(number=order.number, results=results))
                await asyncio.Event().wait()  # until the next order
        except Exception as error:  # noqa: BLE001  as above
            self._send(OthersCalled(number=order.number, trouble=_words(error)))

    async def _end_task(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def _close_servers(self) -> None:
        for each in self._servers:
            each.close()
        self._servers.clear()
        self._nics = ()


def _in_thread(work: Callable[[], T]) -> Awaitable[T]:
    return asyncio.get_running_loop().run_in_executor(None, work)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
