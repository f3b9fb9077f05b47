"""Which agents are there, what do they say, and how are they told something?"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from broadgauge.messages.agent import EVENT, AgentHello, Alive, AskClock, ClockTold, Event, Order
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.lost_connection import watch_peer
from broadgauge.messages.proof import MAX_LINE_BYTES, answer, is_right, new_challenge
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.messages.within import within

READ_BYTES = 1 << 16
PROOF_LIMIT_S = waiting_limit_s(10.0)
SILENCE_LIMIT_S = waiting_limit_s(60.0)
"""Agents say every second that they are there, in timed parts every ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """Something that an agent said; `event` None: its connection ended, as `why` says."""

    agent: int
    event: Event | None
    why: str = ""


@dataclass(slots=True, kw_only=True)
class AgentLink:
    """A connected agent."""

    agent: int
    hello: AgentHello
    writer: asyncio.StreamWriter
    frames: FrameWriter = field(default_factory=lambda: FrameWriter(unique_sender("leader")))

    def send(self, order: Order) -> None:
        """Give an order; one that nobody is left for is lost, as the end of the link tells."""
        if not self.writer.is_closing():
            self.writer.write(self.frames.write(order))


class Agents:
    """All agents of the allocation, as they come and go."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._links: dict[int, AgentLink] = {}
        self._came = asyncio.Condition()
        self._clocks: dict[tuple[int, int], asyncio.Future[ClockTold]] = {}
        self._num_asked = 0
        self.events: asyncio.Queue[AgentEvent] = asyncio.Queue()
        """Of the agents that are there, in the order heard."""

    async def listen(self, address: str | None, port: int = 0) -> tuple[asyncio.Server, int]:
        """Let agents in; the port. None: at every address of the machine. Raises OSError."""
        server = await asyncio.start_server(self._serve, address, port, limit=READ_BYTES)
        return server, int(server.sockets[0].getsockname()[1])

    def link(self, agent: int) -> AgentLink | None:
        """None: it is not there."""
        return self._links.get(agent)

    async def wait_for(self, agents: Iterable[int], limit_s: float) -> list[int]:
        """Until all of these are there; those that are still missing at the limit."""
        wanted = list(agents)

        def missing() -> list[int]:
            return [agent for agent in wanted if agent not in self._links]

        async with self._came:
            with suppress(asyncio.TimeoutError):
                await within(limit_s, self._came.wait_for(lambda: not missing()))
        return missing()

    async def ask_clock(self, agent: int, limit_s: float) -> ClockTold | None:
        """What time is it there? None: it did not answer."""
        link = self._links.get(agent)
        if link is None:
            return None
        self._num_asked += 1
        number = self._num_asked
        told: asyncio.Future[ClockTold] = asyncio.get_running_loop().create_future()
        self._clocks[agent, number] = told
        link.send(AskClock(number=number))
        try:
            return await within(limit_s, told)
        except asyncio.TimeoutError:
            return None
        finally:
            del self._clocks[agent, number]

    def dismiss(self) -> None:
        """Close every link: an agent without its leader leaves."""
        for link in self._links.values():
            link.writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its proof to its end."""
        try:
            agent = await within(PROOF_LIMIT_S, self._prove(reader, writer))
        except (asyncio.TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
            agent = None
        if agent is not None:
            watch_peer(writer)
            why = await self._listen_to(agent, reader, writer)
            link = self._links.get(agent)
            if link is not None and link.writer is writer:
                del self._links[agent]
                self.events.put_nowait(AgentEvent(agent=agent, event=None, why=why))
        writer.close()

    async def _prove(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> int | None:
        """The agent's number; None: it does not know the token."""
        challenge = new_challenge()
        writer.write(f"{challenge}\n".encode())
        line = await reader.readline()
        if len(line) > MAX_LINE_BYTES:
            return None
        number, own, told = line.decode("ascii").split()
        if not is_right(self._token, f"agent {int(number)}", told, challenge, own):
            return None
        writer.write(f"{answer(self._token, 'leader', own, challenge)}\n".encode())
        return int(number)

    async def _listen_to(
        self, agent: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str:
        """Take in what it says; how the connection ended."""
        frames = FrameReader()
        while True:
            try:
                data = await within(SILENCE_LIMIT_S, reader.read(READ_BYTES))
            except (OSError, asyncio.TimeoutError) as error:
                return _in_words(error)
            if not data:
                return "it closed the connection"
            for received in frames.feed(data)[0]:
                try:
                    event = EVENT(received.message)
                except DecodeError as error:
                    return f"it said what no agent says: {error}"
                await self._take(agent, event, writer)
            for lost in frames.overtaken():  # what they said of a trial would be missing from it
                return f"{lost} did not come"

    async def _take(self, agent: int, event: Event, writer: asyncio.StreamWriter) -> None:
        if isinstance(event, AgentHello):
            before = self._links.get(agent)
            if before is not None:  # it came back before the end of its old connection was seen
                before.writer.close()
                self.events.put_nowait(
                    AgentEvent(agent=agent, event=None, why="it was started again")
                )
            self._links[agent] = AgentLink(agent=agent, hello=event, writer=writer)
            async with self._came:
                self._came.notify_all()
        elif isinstance(event, ClockTold):
            waiting = self._clocks.get((agent, event.number))
            if waiting is not None and not waiting.done():
                waiting.set_result(event)
        elif not isinstance(event, Alive):
            self.events.put_nowait(AgentEvent(agent=agent, event=event))


def _in_words(error: Exception) -> str:
    """Since Python 3.11 a time limit of asyncio's and of the kernel's are one type."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"the connection broke: {error.strerror}"
    return f"it said nothing for {SILENCE_LIMIT_S:g} s"
