"""What does a leader do all its life? Runs jobs, keeps what comes of them, and ends when told to.

It is started over ssh with one line of JSON on its standard input, tells the agents' port and its
socket in one line of its standard output, and lives on in a session of its own. Its folder is its
alone, and goes with it.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from broadgauge.leader.agents import Agents
from broadgauge.leader.job_progress import JobProgress
from broadgauge.leader.job_words import with_words
from broadgauge.leader.launch_life import LaunchLife, life_begins
from broadgauge.leader.preflight.before_jobs import BeforeJobs
from broadgauge.leader.spool import Spool, SpoolFull
from broadgauge.leader.tools import Tools
from broadgauge.messages.agent import Refused
from broadgauge.messages.codec import Decoder
from broadgauge.messages.free_port import free_port
from broadgauge.messages.leader import (
    LIFE_WORD,
    MASTER_WORD,
    PORT_WORD,
    Attach,
    Job,
    JobsDone,
    LeaderHello,
    LeaderOrder,
    LifeEnds,
    SkipTrials,
    Stop,
    Stored,
    TakeJobs,
)
from broadgauge.messages.start_line import WrongStart, read_start
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.messages.within import within

LOOK_EVERY_S = 1.0
WRONG_START = 2
"""Exit code: a wrong command."""
FIRST_JOBS_LIMIT_S = waiting_limit_s(180.0)
"""For a tool to start the agents and give the first jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderStart:
    """What a leader is started with."""

    folder: str
    """Its own: the spool and the socket; removed when it ends."""
    address: str
    """Of this host on the control network, where agents find it."""
    token: str = field(repr=False)
    version: str
    keep_s: float
    """How long it waits for a tool when its jobs are done."""


LEADER_START: Decoder[LeaderStart] = Decoder(LeaderStart)


class LeaderVoice(Protocol):
    """Whoever hears what the leader keeps."""

    @property
    def absent_s(self) -> float:
        """How long has nobody been there?"""
        ...

    def announce(self) -> None:
        """The spool has grown."""
        ...

    def give_up(self, message: str) -> None:
        """Say why nothing more will come."""
        ...


class Leader:
    """All of one allocation's launches."""

    def __init__(self, start: LeaderStart) -> None:
        self._start = start
        self._spool = Spool(self._spool_path())
        self._agents = Agents(start.token)
        self._jobs: list[JobProgress] = []
        self._before = BeforeJobs(self._agents)
        self._generation = -1
        self._life: LaunchLife | None = None
        self._num_lives = 0
        self._has_news = asyncio.Event()
        self._is_stopped = False
        self._is_full = False
        """An event could not be kept."""
        self._tools: LeaderVoice

    def _spool_path(self) -> Path:
        """Where its events are kept. Raises OSError."""
        return Path(self._start.folder) / "spool"

    @property
    def _disk(self) -> Path:
        """Where there must be room for them, as people know it."""
        return Path(self._start.folder).parent

    async def lead(self) -> None:
        """Until the tool says stop, or has been away too long with nothing left to run."""
        self._tools = tools = Tools(self._spool, self._hello, self._obey)
        for_agents, port = await self._agents.listen(self._start.address)
        for_tools = await tools.listen(Path(self._start.folder) / "socket")
        _say_ready(port, self._start.folder)
        try:
            await self._lead_on()
        finally:
            for_agents.close()
            for_tools.close()

    async def _lead_on(self) -> None:
        while not self._is_stopped:
            if self._before.is_wanted:
                await self._check()
            elif self._jobs:
                await self._run_next()
            elif self._tools.absent_s > self._patience_s:
                return
            else:
                await self._wait_for_news()

    @property
    def _patience_s(self) -> float:
        """A tool that is killed before it gave jobs does not know of this leader any more."""
        has_jobs = self._generation >= 0
        return self._start.keep_s if has_jobs else min(self._start.keep_s, FIRST_JOBS_LIMIT_S)

    async def _wait_for_news(self) -> None:
        self._has_news.clear()
        try:
            await within(LOOK_EVERY_S, self._has_news.wait())
        except asyncio.TimeoutError:
            return

    async def _check(self) -> None:
        """Before the first of these jobs, or instead of them."""
        generation = self._generation
        done = await self._before.check()
        if done is not None:
            self._tell(done, generation)
            self._tell_if_done()

    async def _run_next(self) -> None:
        """One life of the first job, if it has anything left."""
        lives, generation = self._jobs[0], self._generation
        if not lives.is_over:
            await self._run_life(lives, generation)
        # Other jobs may have come meanwhile, or a stop.
        if generation == self._generation and lives.is_over and self._jobs:
            self._jobs.pop(0)
        self._tell_if_done()

    async def _run_life(self, lives: JobProgress, generation: int) -> None:
        refusals = self._before.refusals_of(lives.job)
        if refusals:
            self._refuse(lives, refusals, generation)
            return
        words = {
            LIFE_WORD: lives.life_id,
            PORT_WORD: str(free_port()),
            MASTER_WORD: self._master(lives.job),
        }
        self._num_lives += 1
        life = LaunchLife(
            agents=self._agents,
            number=self._num_lives,
            job=with_words(lives.job, words),
            life_id=lives.life_id,
            tell=lambda event: self._tell(event, generation),
        )
        self._life, wanted = life, tuple(lives.left)
        has_come_up = await life.live(wanted)
        self._life = None
        if not has_come_up:
            lives.lost(wanted)
        elif generation == self._generation:  # else it may have been ended before it ran anything
            lives.lived(life.ran)

    def _refuse(self, lives: JobProgress, why: Sequence[str], generation: int) -> None:
        """Its ranks are not started: they would fail, or hang until a limit."""
        wanted = tuple(lives.left)
        self._tell(life_begins(self._agents, lives.job, lives.life_id, wanted), generation)
        more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
        found = f"no rank was started, by what the preflight found: {why[0]}{more}"
        message = "\n".join((found, *why[1:]))
        hint = "`preflight: false` in the experiment starts it all the same"
        self._tell(Refused(message=message, hint=hint), generation)
        self._tell(LifeEnds(life_id=lives.life_id), generation)
        lives.lost(wanted)

    def _master(self, job: Job) -> str:
        """The address of its first node, where its ranks meet."""
        link = self._agents.link(job.orders[0].agent) if job.orders else None
        told = "" if link is None else link.hello.place.get("address", "")
        return told or self._start.address

    def _tell_if_done(self) -> None:
        if not self._jobs and not self._before.is_wanted and not self._is_stopped:
            self._tell(JobsDone(), self._generation)

    def _obey(self, order: LeaderOrder) -> None:
        if isinstance(order, TakeJobs):
            self._take(order)
        elif isinstance(order, SkipTrials):
            self._skip(frozenset(order.trial_ids))
        elif isinstance(order, Stored):
            self._forget(order.number)
        elif isinstance(order, Stop):
            self._is_stopped = True
            self._jobs = []
            self._cancel()
        else:
            assert isinstance(order, Attach), "the socket's own"

    def _forget(self, number: int) -> None:
        with suppress(OSError):  # no room to write it again: it is kept
            self._spool.stored(number)

    def _take(self, order: TakeJobs) -> None:
        if order.generation <= self._generation or self._is_full:
            return  # told again after a connection broke
        self._generation = order.generation
        self._before.take(order.jobs, order.preflight)
        jobs = order.jobs if order.preflight != "only" else ()
        self._jobs = [JobProgress.of(job) for job in jobs]
        if self._life is None:
            self._tell_if_done()
        self._cancel()

    def _skip(self, trial_ids: frozenset[str]) -> None:
        for job in self._jobs:
            job.skip(trial_ids)
        if self._life is not None:
            self._life.skipped |= trial_ids
            ran = self._life.ran[:-1]
            if self._jobs and not [each for each in self._jobs[0].left if each not in ran]:
                self._cancel()

    def _cancel(self) -> None:
        self._has_news.set()
        if self._is_stopped:
            self._before.cancel()
        if self._life is not None:
            self._life.cancel()

    def _tell(self, event: Any, generation: int) -> None:
        if self._is_full:
            return
        try:
            self._spool.append(generation, event)
        except (SpoolFull, OSError) as error:
            # Nobody could read what comes after a gap, also where it would fit in: the trials that
            # are left are run again.
            self._is_full = True
            self._tools.give_up(_in_words(error, self._disk))
            self._end_full()
            return
        self._tools.announce()

    def _end_full(self) -> None:
        """What is kept waits for a tool, which then stops it."""
        self._jobs = []
        self._cancel()

    def _hello(self) -> LeaderHello:
        return LeaderHello(
            version=self._start.version,
            pid=os.getpid(),
            generation=self._generation,
            next_number=self._spool.next_number,
            leader=self._spool.leader,
        )


def _in_words(error: SpoolFull | OSError, folder: Path) -> str:
    if isinstance(error, SpoolFull):
        return str(error)
    return f"{folder}: {error.strerror or error}"


def _say_ready(port: int, folder: str) -> None:
    """The one line of its standard output, which is closed then: ssh waits for its end."""
    told = {"port": port, "folder": folder, "pid": os.getpid()}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    with open(os.devnull, "r+b") as null:  # noqa: PTH123  a descriptor is wanted
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)


def main() -> int:
    """Lead until the end, and leave nothing."""
    try:
        start = read_start(LEADER_START, sys.stdin)
    except WrongStart as error:
        sys.stderr.write(f"leader: {error}\n")
        return WRONG_START
    try:
        asyncio.run(Leader(start).lead())
    finally:
        shutil.rmtree(start.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
