"""How does a leader speak to a tool that only reads its log, and hear one that only writes files?

In a pod nobody connects to: events go to standard output, numbered as ever, and orders come as
files of a folder that the tool can have grow (a ConfigMap). A log may be cut, rotated, or read for
the first time late: each event says whose it is, and every 15 seconds a hello says it again, and
which event is the next, so that a gap at the end is seen, too. A tool that missed events asks for
them with another `attach`, and they are told once more, by a sender of another name.
"""

import asyncio
import gzip
import json
import os
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from broadgauge.leader.spool import Spool
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.frames import FrameWriter, unique_sender
from broadgauge.messages.leader import (
    LEADER_ORDER,
    Attach,
    LeaderGivesUp,
    LeaderHello,
    LeaderOrder,
    Stop,
)
from broadgauge.messages.pod_log import log_line
from broadgauge.messages.within import within

HELLO_EVERY_S = 15.0
"""A line of a log each time, for hours."""
LOOK_EVERY_S = 1.0
"""For new orders."""
ORDER_PATTERN = "order-*.json.gz"


class LogTools:
    """Standard output, and a folder with orders."""

    def __init__(
        self,
        spool: Spool,
        hello: Callable[[], LeaderHello],
        obey: Callable[[LeaderOrder], None],
        *,
        orders: Path,
        output: int,
    ) -> None:
        """`orders`: the folder. `output`: the descriptor that events are written to."""
        self._spool = spool
        self._hello = hello
        self._obey = obey
        self._orders = orders
        self._output = output
        self._frames = FrameWriter(unique_sender("leader"), is_shared=True)
        self._told = -1
        """The last event that was told."""
        self._seen: set[str] = set()
        """Names of orders."""
        self._grown = asyncio.Event()
        self._last_words: str | None = None
        self._hello_s = self._busy_s = self._now_s
        # Of its own: a container runtime that reads slowly must not stand in an agent's way. One:
        # what is written stays in its order, and whole.
        self._writer = ThreadPoolExecutor(1)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False
        """Before Python 3.12 a cancellation that meets the end of a wait is lost."""

    @property
    def absent_s(self) -> float:
        """How long has nothing been asked, and nothing happened?"""
        return self._now_s - self._busy_s

    def announce(self) -> None:
        """The spool has grown."""
        self._busy_s = self._now_s
        self._grown.set()

    def give_up(self, message: str) -> None:
        """Say why nothing more will come, at the end."""
        self._last_words = message
        self._grown.set()

    def say(self, text: str) -> None:
        """A line for people, between events."""
        self._writer.submit(self._write_all, log_line(text))

    async def begin(self) -> None:
        """Take the orders that are there, say hello, and go on with both."""
        self._read_orders()
        await self._say_hello()
        self._tasks = [
            asyncio.create_task(self._tell_on()),
            asyncio.create_task(self._look_for_orders()),
        ]

    async def close(self) -> None:
        """Tell the rest."""
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._tell_new()
        await self._say_hello()
        if self._last_words is not None:
            await self._write(LeaderGivesUp(message=self._last_words))
        await self._out(self._frames.close())
        self._writer.shutdown()

    @property
    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def _tell_on(self) -> None:
        while not self._is_closing:
            self._grown.clear()
            await self._tell_new()
            left_s = self._hello_s + HELLO_EVERY_S - self._now_s
            if left_s <= 0:
                await self._say_hello()
                continue
            try:
                await within(left_s, self._grown.wait())
            except asyncio.TimeoutError:
                continue

    async def _tell_new(self) -> None:
        if self._spool.next_number <= self._told + 1:
            return
        frames = self._frames
        for spooled in self._spool.after(self._told):
            if self._frames is not frames:  # an `attach` came meanwhile: from there, then
                return
            self._told = spooled.number
            await self._write(replace(spooled, leader=self._spool.leader))

    async def _say_hello(self) -> None:
        """All events before the one that it calls the next stand before it in the log."""
        self._hello_s = self._now_s
        await self._write(replace(self._hello(), next_number=self._told + 1))

    async def _look_for_orders(self) -> None:
        while not self._is_closing:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._read_orders():
                await self._say_hello()

    def _read_orders(self) -> bool:
        """Obey those that are new, in the order of their names; were there any?"""
        new = [path for path in sorted(self._orders.glob(ORDER_PATTERN)) if self._is_new(path)]
        for path in new:
            try:
                data = path.read_bytes()
            except OSError:  # the folder is being changed: it is there when we look again
                return path != new[0]
            self._seen.add(path.name)
            self._busy_s = self._now_s
            try:
                order = LEADER_ORDER(json.loads(gzip.decompress(data)))
            except (OSError, EOFError, ValueError, zlib.error, DecodeError) as error:
                self.give_up(f"{path.name} is no order of this version: {type(error).__name__}")
                order = Stop()
            if isinstance(order, Attach):
                self._tell_again(order.after)
            else:
                self._obey(order)
        return bool(new)

    def _is_new(self, path: Path) -> bool:
        return path.name not in self._seen

    def _tell_again(self, after: int) -> None:
        """With another name, since numbers begin again."""
        self._frames = FrameWriter(unique_sender("leader"), is_shared=True)
        self._told = min(after, self._told)
        self._grown.set()

    async def _write(self, message: object) -> None:
        await self._out(self._frames.write(message))

    async def _out(self, data: bytes) -> None:
        """Whoever is cancelled meanwhile: what waits to be written counts as told."""
        writing = asyncio.get_running_loop().run_in_executor(self._writer, self._write_all, data)
        await asyncio.shield(writing)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._output, view) :]
