"""Which tool is attached, and what has it been told?

A tool comes over a unix socket in the leader's folder, which only the user can enter. It gets every
event after the last one that it has, from the spool and then as they come.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from broadgauge.leader.agents import READ_BYTES
from broadgauge.leader.spool import Spool
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.leader import (
    LEADER_ORDER,
    Attach,
    LeaderAlive,
    LeaderGivesUp,
    LeaderHello,
    LeaderOrder,
    Spooled,
)
from broadgauge.messages.unix_sockets import short_path
from broadgauge.messages.within import within

ALIVE_EVERY_S = 5.0


class Tools:
    """The socket, and the one tool that is attached."""

    def __init__(
        self,
        spool: Spool,
        hello: Callable[[], LeaderHello],
        obey: Callable[[LeaderOrder], None],
    ) -> None:
        self._spool = spool
        self._hello = hello
        self._obey = obey
        self._grown = asyncio.Event()
        self._attached: asyncio.StreamWriter | None = None
        self._last_words: str | None = None
        self._last_seen_s = asyncio.get_running_loop().time()

    async def listen(self, path: Path) -> asyncio.AbstractServer:
        """Raises OSError."""
        with short_path(path) as there:
            return await asyncio.start_unix_server(self._serve, there, limit=READ_BYTES)

    @property
    def absent_s(self) -> float:
        """How long has no tool been there?"""
        if self._attached is not None:
            return 0.0
        return asyncio.get_running_loop().time() - self._last_seen_s

    def announce(self) -> None:
        """The spool has grown."""
        self._grown.set()

    def give_up(self, message: str) -> None:
        """Tell the tool that is there why nothing more will come."""
        self._last_words = message
        self._grown.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._attached is not None:
            self._attached.close()
        self._attached = writer
        telling: asyncio.Task[None] | None = None
        frames = FrameReader()
        try:
            while data := await reader.read(READ_BYTES):
                for received in frames.feed(data)[0]:
                    order = LEADER_ORDER(received.message)
                    if isinstance(order, Attach):
                        telling = asyncio.create_task(self._tell(order.after, writer))
                    else:
                        self._obey(order)
        except (OSError, DecodeError):
            pass  # the tool will come again, or another one
        finally:
            if telling is not None:
                telling.cancel()
            writer.close()
            if self._attached is writer:
                self._attached = None
            self._last_seen_s = asyncio.get_running_loop().time()

    async def _tell(self, after: int, writer: asyncio.StreamWriter) -> None:
        """All that the tool has not, and then what comes."""
        frames = FrameWriter(unique_sender("leader"))
        with suppress(OSError):
            writer.write(frames.write(self._hello()))
            while True:
                for spooled in self._new(after):
                    writer.write(frames.write(spooled))
                    after = spooled.number
                    await writer.drain()
                if self._last_words is not None:
                    writer.write(frames.write(LeaderGivesUp(message=self._last_words)))
                    await writer.drain()
                    return
                if not await self._wait_for_more(after):
                    writer.write(frames.write(LeaderAlive()))
                    await writer.drain()

    def _new(self, after: int) -> list[Spooled]:
        return list(self._spool.after(after)) if self._spool.next_number > after + 1 else []

    async def _wait_for_more(self, after: int) -> bool:
        """There is one tool, so one waits."""
        self._grown.clear()
        if self._last_words is not None or self._spool.next_number > after + 1:
            return True
        try:
            await within(ALIVE_EVERY_S, self._grown.wait())
        except asyncio.TimeoutError:
            return False
        return True
