"""What does the agent of one host do for its leader? One launch after the other.

    leader ── TCP ── this process ── socket ── supervisor of one launch ── ranks

It connects, proves that it knows the allocation's token, and says which machine it is on. Each
launch has a supervisor of its own; what is said is passed on both ways. In timed parts nothing is
passed on but what ends them, a command's few readings, and a sign of life every ten seconds, so
that ours hardly shares a NIC with what is measured. Without its leader it ends its ranks and
leaves, and its folder goes with it.
"""

import asyncio
import json
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.agent.addresses import address_of
from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.agent.host_logs import LogTeller, failed_rank, is_full, no_space
from broadgauge.agent.preflight.part import AgentPreflight, LookedUpMachine, LookedUpNetwork
from broadgauge.messages.agent import (
    EVENT,
    ORDER,
    PROTOCOL_VERSION,
    AgentHello,
    Alive,
    AskClock,
    ClockTold,
    End,
    Ended,
    Event,
    LaunchTaken,
    Marked,
    Order,
    RankSaid,
    Refused,
    Release,
    RunTrial,
)
from broadgauge.messages.codec import DecodeError, Decoder
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.lost_connection import watch_peer
from broadgauge.messages.preflight import (
    CallOthers,
    CheckedNetwork,
    ClosePreflight,
    OpenPreflight,
)
from broadgauge.messages.proof import MAX_LINE_BYTES, answer, is_right, new_challenge
from broadgauge.messages.rank import COUNTED_STEPS
from broadgauge.messages.start_line import WrongStart, read_start
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.messages.within import within

READ_BYTES = 1 << 16
CONNECT_LIMIT_S = waiting_limit_s(10.0)
ALIVE_EVERY_S = 1.0
ALIVE_IN_TIMED_PART_S = 10.0
"""Still often enough for a leader that waits a minute."""
LAST_WORDS_S = waiting_limit_s(5.0)
"""For a supervisor whose leader is gone."""
TIMED_PART_BEGINS = ":begin"
WRONG_START = 2
"""Exit code: a wrong command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStart:
    """What an agent is started with."""

    number: int
    """Of its host in the allocation."""
    leader_address: str
    leader_port: int
    token: str = field(repr=False)
    version: str
    folder: str
    """Its own, removed when it ends."""
    supervisor: tuple[str, ...]
    """The program that owns the ranks of one launch; the number of its socket is added."""
    logs: str
    """Where a launch writes; made here, and what is in it told when the launch has ended."""
    working_folder: str
    """Where ranks run; empty: where this process does."""
    secrets: dict[str, str] = field(repr=False)
    """Variables that stand in no order: ranks inherit them."""


AGENT_START: Decoder[AgentStart] = Decoder(AgentStart)


PassOn = Callable[[Event], None]
"""Takes what a supervisor says."""


class LeaderRefused(Exception):  # noqa: N818  says what is so
    """What answers at the leader's address does not know the token, or says what no leader says."""


@dataclass(slots=True)
class TimedPart:
    """Whether one goes on, and what waits for its end."""

    goes_on: bool = False
    waiting: list[Event] = field(default_factory=list)

    def hold(self, event: Event) -> bool:
        """Is it to wait? What is neither a rank's word nor of its beginning ends a timed part."""
        if not self.goes_on:
            return False
        match event:
            case RankSaid(message=message):
                must_wait = message.get("type") != "failed"
            case Marked(label=label):
                must_wait = label.endswith(TIMED_PART_BEGINS)
            case _:
                must_wait = False
        if must_wait:
            self.waiting.append(event)
        return must_wait

    def passes(self, event: Event) -> bool:
        """Is it to be told at once, and ends nothing? A command's readings are of where it is."""
        match event:
            case RankSaid(message=message):
                return self.goes_on and message.get("type") == "count"
            case Marked(label=label):
                return self.goes_on and label.startswith(COUNTED_STEPS)
            case _:
                return False

    def let_go(self) -> list[Event]:
        """It is over: what waited, in its order."""
        waiting, self.waiting, self.goes_on = self.waiting, [], False
        return waiting


class HostAgent:
    """One connection to the leader, and the launch that runs."""

    def __init__(self, start: AgentStart) -> None:
        self._start = start
        self._frames = FrameWriter(unique_sender(f"agent{start.number}"))
        self._part = TimedPart()
        self._preflight = AgentPreflight(start.number, self._look, self._send)
        self._launch: _Launch | None = None
        self._is_over = False
        """Has the launch said its last word?"""
        self._logs = LogTeller(Path(start.logs))
        self._num_ranks = 0
        """Of the launch."""
        self._done: set[int] = set()
        """Ranks that have done what they had to in this trial."""

    async def serve(self) -> None:
        """Until the leader is gone. Raises OSError, LeaderRefused."""
        reader = await self._reach()
        self._send(self._hello())
        self._tell_starter()
        alive = asyncio.create_task(self._say_alive())
        frames = FrameReader()
        try:
            while data := await reader.read(READ_BYTES):
                for received in frames.feed(data)[0]:
                    await self._obey(_order(received.message))
        except OSError:
            pass  # as at its end: the leader is gone
        finally:
            alive.cancel()
            await self._preflight.close()
            await self._close_launch()

    async def _reach(self) -> asyncio.StreamReader:
        """The leader, which is there before its agents, and knows the token. Raises OSError,
        asyncio.TimeoutError, LeaderRefused."""
        start = self._start
        reader, self._writer = await within(
            CONNECT_LIMIT_S,
            asyncio.open_connection(start.leader_address, start.leader_port, limit=READ_BYTES),
        )
        watch_peer(self._writer)
        has_proved = False
        try:
            await within(CONNECT_LIMIT_S, self._prove(reader))
            has_proved = True
        finally:
            if not has_proved:
                self._writer.close()
        return reader

    def _hello(self) -> AgentHello:
        return hello(self._start.version)

    def _tell_starter(self) -> None:
        """Who started it waits for a line."""
        _say({"pid": os.getpid()})

    async def _prove(self, reader: asyncio.StreamReader) -> None:
        number, token, own = self._start.number, self._start.token, new_challenge()
        challenge = (await reader.readline())[:MAX_LINE_BYTES].decode("ascii").strip()
        told = answer(token, f"agent {number}", challenge, own)
        self._writer.write(f"{number} {own} {told}\n".encode())
        line = (await reader.readline())[:MAX_LINE_BYTES].decode("ascii").strip()
        if not is_right(token, "leader", line, own, challenge):
            raise LeaderRefused("the leader's answer is wrong: another run's, or not ours")

    async def _obey(self, order: Order) -> None:
        if isinstance(order, AskClock):
            told = ClockTold(number=order.number, monotonic_s=time.monotonic(), unix_s=time.time())
            self._send(told)
        elif isinstance(order, (OpenPreflight, CallOthers, ClosePreflight)):
            await self._preflight.obey(order)
        elif isinstance(order, LaunchOrder):
            await self._make_way(order)
            await self._begin(order)
        elif self._launch is not None and not self._is_over:
            if isinstance(order, Release) and order.label.endswith(TIMED_PART_BEGINS):
                await self._writer.drain()
                self._part.goes_on = True
            if isinstance(order, RunTrial):
                self._done.clear()
            self._launch.give(order)
        elif isinstance(order, End):
            self._send(Ended())  # of a launch that is over

    def _look(self, networks: tuple[CheckedNetwork, ...], limit_s: float) -> LookedUpMachine:
        """By the names of their interfaces."""
        del limit_s  # they are there, or not
        found = [
            LookedUpNetwork(
                name=each.name,
                interfaces=each.interfaces,
                addresses=tuple(address_of(name) or "" for name in each.interfaces),
            )
            for each in networks
        ]
        hardware = read_machine_hardware(Path("/"), os.environ)
        return LookedUpMachine(hardware=hardware, networks=tuple(found))

    async def _make_way(self, order: LaunchOrder) -> None:
        """Leave nothing of the launch before, and say so."""
        await self._close_launch()
        self._part.let_go()
        self._is_over = False
        self._send(LaunchTaken(number=order.number))

    async def _begin(self, order: LaunchOrder) -> None:
        self._num_ranks = len(order.ranks)
        self._launch = await _Launch.begin(self._start, order, self._pass_on)

    async def _close_launch(self) -> None:
        """Leave no rank of the one that was last."""
        if self._launch is not None:
            launch, self._launch = self._launch, None
            await launch.close()

    def _pass_on(self, event: Event) -> None:
        if self._part.passes(event):
            self._send(event)
            return
        if isinstance(event, Alive) or self._part.hold(event):
            return
        for waiting in self._part.let_go():
            self._send(waiting)
        rank = failed_rank(event)
        if rank is not None and is_full(self._start.logs):
            self._send(RankSaid(rank=rank, message=no_space(self._start.logs)))
        if isinstance(event, (Ended, Refused)):
            self._is_over = True
            for text in self._logs.rest():
                self._send(text)
        elif self._is_last_done(event):
            for told in self._last_of_trial():
                self._send(told)
        self._send(event)

    def _last_of_trial(self) -> Iterable[Event]:
        """What is told before the last rank is done."""
        return self._logs.of_nccl()

    def _is_last_done(self, event: Event) -> bool:
        """Do all ranks of this agent have nothing more to do in this trial?"""
        match event:
            case RankSaid(rank=rank, message=message) if message.get("type") == "done":
                self._done.add(rank)
                return len(self._done) == self._num_ranks
            case _:
                return False

    def _send(self, event: Event) -> None:
        if not self._writer.is_closing():
            self._writer.write(self._frames.write(event))

    async def _say_alive(self) -> None:
        last_s = 0.0
        while True:
            await asyncio.sleep(ALIVE_EVERY_S)
            every_s = ALIVE_IN_TIMED_PART_S if self._part.goes_on else ALIVE_EVERY_S
            if time.monotonic() - last_s >= every_s:
                last_s = time.monotonic()
                self._send(Alive())


class _Launch:
    """The supervisor of one launch, and the socket to it."""

    def __init__(self, process: asyncio.subprocess.Process, writer: asyncio.StreamWriter) -> None:
        self._process = process
        self._writer = writer
        self._frames = FrameWriter(unique_sender("agent"))
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def begin(
        cls, start: AgentStart, order: LaunchOrder, pass_on: PassOn
    ) -> "_Launch | None":
        """Start the supervisor and give it its order; None where it can't be started."""
        ours, theirs = socket.socketpair()
        words = Path(start.logs) / f"{order.launch_id}.supervisor.log"
        try:
            words.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with theirs, words.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *start.supervisor,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[theirs.fileno()],
                    cwd=start.working_folder or None,
                    env={**os.environ, **start.secrets},
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            theirs.close()
            pass_on(
                Refused(
                    message=_here(f"the supervisor did not start: {error}"),
                    hint=None,
                )
            )
            return None
        reader, writer = await asyncio.open_connection(sock=ours, limit=READ_BYTES)
        launch = cls(process, writer)
        launch.give(order)
        launch._listening = asyncio.create_task(launch._listen(reader, pass_on))
        return launch

    def give(self, order: Order) -> None:
        if not self._writer.is_closing():
            self._writer.write(self._frames.write(order))

    async def close(self) -> None:
        """The closed socket tells the supervisor to end everything; one that does not is killed."""
        self._writer.close()
        try:
            await within(LAST_WORDS_S, self._process.wait())
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()
        if self._listening is not None:
            self._listening.cancel()

    async def _listen(self, reader: asyncio.StreamReader, pass_on: PassOn) -> None:
        """Pass on what it says; its end without a last word is told."""
        frames, last = FrameReader(), None
        try:
            while data := await reader.read(READ_BYTES):
                for received in frames.feed(data)[0]:
                    last = EVENT(received.message)
                    pass_on(last)
        except OSError:
            pass  # as at its end
        if not isinstance(last, (Ended, Refused)):
            code = await self._process.wait()
            message = _here(f"the supervisor of the ranks ended with exit code {code}")
            pass_on(Refused(message=message, hint=None))


def _order(message: object) -> Order:
    """Raises LeaderRefused, which repeats no value: a launch's environment has secrets."""
    try:
        return ORDER(message)
    except DecodeError as error:
        told = error.without_value
    raise LeaderRefused(f"the leader said what no leader says: {told}")


def _here(message: str) -> str:
    return f"{socket.gethostname()}: {message}"


def _say(told: dict[str, object]) -> None:
    """The one line of its standard output, which is closed then: ssh waits for its end."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    with open(os.devnull, "r+b") as null:  # noqa: PTH123  a descriptor is wanted
        os.dup2(null.fileno(), 1)


def hello(version: str) -> AgentHello:
    """Which machine is this?"""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return AgentHello(
        protocol=PROTOCOL_VERSION,
        version=version,
        python=platform.python_version(),
        hostname=socket.gethostname(),
        pid=os.getpid(),
        kernel=platform.release(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=pages,
    )


def main() -> int:
    """Serve one leader, and leave nothing."""
    try:
        start = read_start(AGENT_START, sys.stdin)
    except WrongStart as error:
        sys.stderr.write(f"agent: {error}\n")
        return WRONG_START
    try:
        asyncio.run(HostAgent(start).serve())
    except (OSError, LeaderRefused, asyncio.TimeoutError) as error:
        sys.stderr.write(f"agent {start.number}: {error}\n")
        return 1
    finally:
        shutil.rmtree(start.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
