"""A leader and its agents in a thread of this process, on lines that lose, cut and double frames?

    engine, HostsPlatform ── lines ── Leader, its spool ── lines ── HostAgents ── ScriptedRanks

All but the machines, ssh and the ranks is the product's. What a rank measures follows from the
trial and the rank alone, so two runs of a plan have equal records.
"""

import asyncio
import random
import re
import shutil
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.leader.fake_supervisor import Supervisor
from tests.platforms.hosts.test_environment import FIRST

from broadgauge.agent import on_host
from broadgauge.agent.facts import HostFacts, InterfaceFacts
from broadgauge.agent.on_host import AgentStart, HostAgent
from broadgauge.leader import clocks, launch_life, main
from broadgauge.leader.main import Leader, LeaderStart
from broadgauge.messages.agent import Marked, RunTrial, TrialStarts
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import Stop
from broadgauge.messages.proof import new_token
from broadgauge.messages.unix_sockets import short_path
from broadgauge.platforms.hosts import platform
from broadgauge.platforms.hosts.allocation import AttachedLeader
from broadgauge.platforms.hosts.leader_place import LeaderPlace
from broadgauge.platforms.led import following
from broadgauge.platforms.led.handle import LinkLost
from broadgauge.platforms.led.leader_link import ByteStream, LeaderLink

FAULTS = ("lost", "cut", "doubled", "interleaved")
ALWAYS_LOST = 40
"""The line of this number, so that every seed loses one."""
NCCL_LOGS: dict[int, str] = {}
"""What NCCL writes on each host, by its number."""
_FRAME = re.compile(rb"@bg2 (\S+) (\d+) ")


@dataclass(slots=True)
class Damage:
    """What happens to lines on one way, and to which frames it did."""

    chance: random.Random
    ratio: float
    """Of lines."""
    hang_up_ratio: float = 0.0
    """Of lines, after which the connection ends."""
    num_lines: int = 0
    lost: dict[str, list[int]] = field(default_factory=dict)
    """By sender: numbers of frames."""
    hung_up: set[str] = field(default_factory=set)
    """Senders."""

    def of(self, line: bytes) -> bytes:
        """What is left of it."""
        self.num_lines += 1
        fault = self.chance.choice(FAULTS) if self.chance.random() < self.ratio else None
        if self.num_lines == ALWAYS_LOST and self.ratio > 0:
            fault = "lost"
        frame = _FRAME.match(line)
        if fault in ("lost", "cut") and frame is not None:
            self.lost.setdefault(frame[1].decode(), []).append(int(frame[2]))
        match fault:
            case "lost":
                return b""
            case "cut":
                return line[: self.chance.randrange(len(line) - 1)] + self.chance.choice(
                    (b"\n", b"")  # the next line stands behind it
                )
            case "doubled":
                return line + line
            case "interleaved":
                return b"a rank said " + line[:-1] + b" something\n" + line[:7] + b"\n"
            case _:
                return line

    def hangs_up(self, line: bytes) -> bool:
        """Does the connection end here?"""
        frame = _FRAME.match(line)
        if frame is None or self.chance.random() >= self.hang_up_ratio:
            return False
        self.hung_up.add(frame[1].decode())
        return True


class ScriptedRanks(Supervisor):
    """One rank a node, of collectives: its times follow from the trial, the rank and the size."""

    now_s = 0.0

    def trial(self, order: RunTrial) -> bool:
        self.say(TrialStarts(facts=None))
        trial_id = order.command.trial_id
        (rank,) = (each.rank for each in self.launch.ranks)
        self.hear(rank, type="phase", trial_id=trial_id, phase="measure")
        for size in order.command.task.sizes_bytes:  # type: ignore[union-attr]
            label = f"all_reduce/float32/{size}"
            if not self.meet(f"{label}:begin") or not self.meet(f"{label}:end"):
                return False
            chance = random.Random(f"{trial_id} {rank} {size}")
            seconds = [chance.uniform(0.001, 0.002) for _ in range(3)]
            told = {"kind": "collective", "op": "all_reduce", "dtype": "float32"}
            told |= {"size_bytes": size, "seconds": seconds, "is_correct": True, "label": label}
            self.hear(rank, type="block", trial_id=trial_id, **told)
        if not self.meet("teardown"):
            return False
        self.hear(rank, type="done", trial_id=trial_id)
        return True

    def marked(self, label: str) -> Marked:
        self.now_s += 0.25
        return replace(super().marked(label), time_s=self.now_s)


class Rig:
    """Leaders and agents, each allocation in a folder of its own."""

    def __init__(self, folder: Path, to_tool: Damage, to_leader: Damage) -> None:
        self.folder, self.to_tool, self.to_leader = folder, to_tool, to_leader
        self.num_allocations = 0
        self._ports: dict[str, int] = {}
        self._leader: Leader | None = None
        self._leading: asyncio.Future[None] | None = None
        self._agents: list[HostAgent] = []
        self._tasks: list[asyncio.Future[None]] = []
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def started(self, *unused: object) -> LeaderPlace:
        """In place of `start_allocation`."""
        self.num_allocations += 1
        place = self.folder / f"leader{self.num_allocations}"
        place.mkdir()
        self._do(self._begin(place))
        return LeaderPlace(host="node0", python="", folder=str(place), zip_hash="")

    def attached(self, place: LeaderPlace, after: int) -> AttachedLeader:
        """In place of `attach`."""
        ours, theirs = socket.socketpair()
        self._do(self._join(theirs, f"{place.folder}/socket"))
        fd = ours.detach()
        link = LeaderLink(ByteStream(reading=fd, writing=fd), after)
        try:
            link.wait_for_hello(5)
        except LinkLost:
            link.close()
            raise
        return _Attached(process=None, link=link)  # type: ignore[arg-type]

    def stopped(self, place: LeaderPlace) -> bool:
        """In place of `stop`."""
        self._do(self._end())
        shutil.rmtree(place.folder, ignore_errors=True)  # it may have ended, or be stopped twice
        return True

    def close(self) -> None:
        self._do(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    async def _end(self) -> None:
        """The leader as it is told to, then all that its process and the agents' would take."""
        if self._leading is not None and self._leader is not None:
            self._leader._obey(Stop())
            await self._leading
            self._leading = None
        for _ in range(3):  # what catches a cancellation has something to do before it ends
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._leader is not None:
            self._leader._agents.dismiss()
        for agent in self._agents:
            agent._writer.close()
        self._agents.clear()
        await asyncio.sleep(0.01)  # so that what is closed is let go

    async def _begin(self, place: Path) -> None:
        token = new_token()
        start = LeaderStart(
            folder=str(place), address="127.0.0.1", token=token, version="", keep_s=60
        )
        self._leader = Leader(start)
        self._leading = asyncio.ensure_future(self._leader.lead())
        while str(place) not in self._ports:
            await asyncio.sleep(0.001)
        server = await asyncio.start_server(
            lambda *pair: self._to_leader(self._ports[str(place)], *pair), "127.0.0.1", 0
        )
        self._keep(server.serve_forever())
        for number in range(2):
            agent = AgentStart(
                number=number,
                leader_address="127.0.0.1",
                leader_port=server.sockets[0].getsockname()[1],
                token=token,
                version="",
                folder=str(place),
                supervisor=(),
                logs=str(place / f"logs{number}"),
                working_folder="",
                secrets={},
            )
            self._agents.append(HostAgent(agent))
            self._keep(self._agents[-1].serve())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """The loop alone would forget a task."""
        self._tasks.append(asyncio.ensure_future(work))

    def is_ready(self, port: int, folder: str) -> None:
        """In place of the leader's first line."""
        self._ports[folder] = port

    async def _to_leader(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        leader = await asyncio.open_connection("127.0.0.1", port)
        await _pass_both_ways((reader, writer), leader, to_here=None, to_there=self.to_leader)

    async def _join(self, ours: socket.socket, path: str) -> None:
        tool = await asyncio.open_connection(sock=ours)
        with short_path(Path(path)) as there:
            leader = await asyncio.open_unix_connection(there)
        self._keep(_pass_both_ways(tool, leader, to_here=self.to_tool, to_there=None))


class _Attached(AttachedLeader):
    def close(self) -> None:
        self.link.close()


End = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _pass_both_ways(
    here: End, there: End, to_here: Damage | None, to_there: Damage | None
) -> None:
    """Until one of them ends."""
    ways = (_pass(there[0], here[1], to_here), _pass(here[0], there[1], to_there))
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for writer in (here[1], there[1]):
            writer.close()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, damage: Damage | None
) -> None:
    with suppress(OSError):
        while line := await reader.readline():
            writer.write(line if damage is None else damage.of(line))
            await writer.drain()
            if damage is not None and damage.hangs_up(line):
                return


class _ThreadOfRanks:
    """In place of the supervisor's process."""

    def __init__(self, control: socket.socket) -> None:
        self._thread = threading.Thread(target=self._run, args=(control,), daemon=True)
        self._thread.start()

    def _run(self, control: socket.socket) -> None:
        with control, suppress(OSError):
            ScriptedRanks(control, 0.0).run()

    async def wait(self) -> int:
        while self._thread.is_alive():
            await asyncio.sleep(0.001)
        return 0


async def _begin_launch(start: AgentStart, order: LaunchOrder, pass_on: Any) -> Any:
    """In place of `_Launch.begin`."""
    Path(start.logs).mkdir(exist_ok=True)
    log = f"{order.launch_id}.rank{start.number}"
    (Path(start.logs) / f"{log}.log").write_text("its words\n")
    if start.number in NCCL_LOGS:
        (Path(start.logs) / f"{log}.nccl.log").write_text(NCCL_LOGS[start.number])
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    launch = on_host._Launch(_ThreadOfRanks(theirs), writer)  # type: ignore[arg-type]
    launch.give(order)
    launch._listening = asyncio.create_task(launch._listen(reader, pass_on))
    return launch


def two_hosts() -> tuple[HostFacts, ...]:
    wire = InterfaceFacts(
        name="eth0", address=None, netmask=None, mtu_bytes=1500, speed_gbps=None, driver=None
    )
    return tuple(
        replace(FIRST, machine_id=name, hostname=name, interfaces=(wire,), reached_at="10.0.0.1")
        for name in ("node0", "node1")
    )


@contextmanager
def rig_in(
    folder: Path, to_tool: Damage, to_leader: Damage, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rig]:
    """The product's own parts joined by this rig."""
    folder.mkdir()
    rig = Rig(folder, to_tool, to_leader)
    monkeypatch.setattr(platform, "start_allocation", rig.started)
    monkeypatch.setattr(platform, "stop", rig.stopped)
    monkeypatch.setattr(platform, "attach", rig.attached)
    monkeypatch.setattr(following, "AGAIN_AFTER_S", (0.0,))
    monkeypatch.setattr(main, "_say_ready", rig.is_ready)
    monkeypatch.setattr(on_host, "_say", lambda told: None)
    monkeypatch.setattr(on_host._Launch, "begin", _begin_launch)
    monkeypatch.setattr(launch_life, "COLLECT_S", 0.05)
    monkeypatch.setattr(launch_life, "COME_LIMIT_S", 0.1)
    monkeypatch.setattr(clocks, "NUM_ROUND_TRIPS", 1)
    monkeypatch.setattr(clocks, "ANSWER_LIMIT_S", 0.2)
    try:
        yield rig
    finally:
        rig.close()
