"""One life of a launch's ranks on several agents: how is it begun, followed and ended?

What the agents say is told on as if one agent owned all nodes.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from broadgauge.leader.agents import AgentEvent, Agents
from broadgauge.leader.clocks import compare_clocks
from broadgauge.leader.link_facts import MeasuredLink, ends_of, measure_link
from broadgauge.leader.meeting import Meeting
from broadgauge.messages.agent import (
    CountersRead,
    DumpStacks,
    End,
    Ended,
    Event,
    LaunchTaken,
    LogFlooded,
    LogText,
    Marked,
    PhaseExpired,
    RankExited,
    RankLeft,
    RankSaid,
    RanksWait,
    ReadCounters,
    Ready,
    Refused,
    Release,
    RunTrial,
    TrialStarts,
)
from broadgauge.messages.found_links import LinkProbed, ListensOnLink
from broadgauge.messages.leader import (
    AgentLost,
    ClockReading,
    Job,
    LifeBegins,
    LifeEnds,
    TrialBegins,
    TrialEnds,
)
from broadgauge.messages.waiting_limits import COLLECT_S, waiting_limit_s
from broadgauge.messages.within import within

COME_LIMIT_S = waiting_limit_s(5.0)
"""For an agent that is started again to come back; the tool starts one that does not."""
DUMP_S = waiting_limit_s(2.5)
"""After a stall or a time limit: every agent's ranks say where they are. Longer than an agent
takes for it."""
END_GRACE_S = waiting_limit_s(15.0)
"""On top of the teardown's limit: stacks, TERM and KILL take a few seconds."""

Tell = Callable[[Any], None]
"""Keeps an event for the tool."""


class _Failed(Exception):  # noqa: N818  no error of ours: the life has to end
    """Something went wrong on an agent, and was told."""


@dataclass(slots=True, kw_only=True)
class LaunchLife:
    """The ranks of one launch, from their start to their end."""

    agents: Agents
    job: Job
    life_id: str
    tell: Tell
    number: int = 0
    """Of all lives of this leader."""
    is_cancelled: bool = False
    """The tool wants it to end."""
    ran: list[RunTrial] = field(default_factory=list)
    """Trials that were begun."""
    skipped: set[str] = field(default_factory=set)
    """Trials that are not wanted any more."""
    _taken: set[int] = field(default_factory=set)
    """Agents that have begun with it: what one says before is of an earlier life."""
    _ended: set[int] = field(default_factory=set)
    """Agents that have no rank of it left."""
    _is_over: bool = False
    _waiting: set[int] = field(default_factory=set)
    """Agents whose ranks wait to be told to go on: they can't see what goes wrong elsewhere."""
    _greeted: dict[int, set[int]] = field(default_factory=dict)
    """Ranks that have said hello, by their agent."""
    _expiries: dict[int, PhaseExpired] = field(default_factory=dict)
    _link: MeasuredLink = field(default_factory=MeasuredLink)
    """Of the network between its hosts."""

    @property
    def _numbers(self) -> tuple[int, ...]:
        return tuple(each.agent for each in self.job.orders)

    async def live(self, trials: Sequence[RunTrial]) -> bool:
        """Run these, one at least, until they are done or one fails. False: the ranks did not come
        up."""
        missing = await self.agents.wait_for(self._numbers, COME_LIMIT_S)
        self.tell(life_begins(self.agents, self.job, self.life_id, trials))
        has_come_up = False
        try:
            for number in missing:
                self._lose(number, "it is not connected to the leader")
            if missing:
                self._ended.update(self._numbers)  # nobody was told to start anything
                raise _Failed
            await self._come_up()
            ends = ends_of(self.job)
            if ends is not None:
                self._link = await measure_link(ends, self._send, self._hear_of_link)
            has_come_up = True
            for trial in trials:
                if trial.command.trial_id not in self.skipped:
                    await self._run(trial)
        except _Failed:
            await self._collect()
        await self._end()
        self.tell(LifeEnds(life_id=self.life_id))
        return has_come_up

    def cancel(self) -> None:
        """End it now; whoever waits for its agents is told so."""
        self.is_cancelled = True
        self.agents.events.put_nowait(AgentEvent(agent=-1, event=None))

    async def _come_up(self) -> None:
        while not self.agents.events.empty():  # of an earlier life
            self.agents.events.get_nowait()
        for each in self.job.orders:
            self._send(each.agent, replace(each.order, number=self.number))
        ready: dict[int, Ready] = {}
        hellos: set[int] = set()
        while len(ready) < len(self._numbers) or len(hellos) < self.job.num_ranks:
            number, event = await self._next()
            if isinstance(event, Ready):
                ready[number] = event
                if ready.keys() == set(self._numbers):
                    notes = dict.fromkeys(note for each in ready.values() for note in each.notes)
                    first = ready[min(ready)]
                    self.tell(Ready(notes=tuple(notes), variables=first.variables))
                continue
            if isinstance(event, RankSaid) and event.message.get("type") == "hello":
                hellos.add(event.rank)
            self._follow(number, event)

    async def _run(self, trial: RunTrial) -> None:
        self.ran.append(trial)
        trial_id = trial.command.trial_id
        before = await compare_clocks(self.agents, self._numbers)
        self.tell(TrialBegins(trial_id=trial_id, unix_s=time.time()))
        after: tuple[ClockReading, ...] = ()
        try:
            await self._measure(trial)
            after = await compare_clocks(self.agents, self._numbers)
        except _Failed:
            await self._collect()
            await self._end()
            raise
        finally:
            self.tell(
                TrialEnds(
                    trial_id=trial_id,
                    unix_s=time.time(),
                    clocks_before=before,
                    clocks_after=after,
                )
            )

    async def _measure(self, trial: RunTrial) -> None:
        self._waiting.clear()
        for number in self._numbers:
            self._send(number, trial)
        meeting = Meeting.of(self._numbers)
        begun: set[int] = set()
        done: set[int] = set()
        while len(done) < self.job.num_ranks:
            number, event = await self._next()
            if isinstance(event, TrialStarts):
                begun.add(number)
                if begun == set(self._numbers):
                    notes = (*event.notes, *self._link.notes)
                    self.tell(replace(event, facts=self._link.facts, notes=notes))
            elif isinstance(event, (RanksWait, CountersRead, Marked)):
                self._meet(meeting, number, event)
            else:
                if isinstance(event, RankSaid):
                    self._hear(event, done)
                self._follow(number, event)

    def _hear(self, event: RankSaid, done: set[int]) -> None:
        kind = event.message.get("type")
        if kind == "done":
            done.add(event.rank)
        elif kind == "count" and len(self._numbers) > 1:  # else the agent has read already
            for each in self._numbers:
                self._send(each, ReadCounters(label=str(event.message.get("label"))))

    def _meet(
        self, meeting: Meeting, number: int, event: RanksWait | CountersRead | Marked
    ) -> None:
        self._see_who_waits(number, event)
        follows = meeting.hear(number, event)
        if isinstance(follows, Marked):
            self.tell(follows)
        elif isinstance(follows, (ReadCounters, Release)):
            if isinstance(follows, Release):
                self._waiting.clear()
            for each in self._numbers:
                self._send(each, follows)

    async def _next(self) -> tuple[int, Event]:
        """What an agent of this life says next. Raises _Failed where one is gone."""
        while True:
            heard = await self.agents.events.get()
            is_ours = self._is_of_this_life(heard)  # asked also of the last that is heard
            if self.is_cancelled:
                raise _Failed
            if not is_ours:
                continue
            if heard.event is None:
                self._lose(heard.agent, heard.why)
                raise _Failed
            return heard.agent, heard.event

    async def _hear_of_link(
        self, deadline_s: float
    ) -> tuple[int, ListensOnLink | LinkProbed] | None:
        """The next that an agent says of its link; what else is said goes on. Raises _Failed."""
        while True:
            try:
                heard = await within(deadline_s - time.monotonic(), self._next())
            except asyncio.TimeoutError:
                return None
            number, event = heard
            if isinstance(event, (ListensOnLink, LinkProbed)):
                return number, event
            self._follow(number, event)

    def _follow(self, number: int, event: Event) -> None:
        """Tell it on. Raises _Failed where it says that something went wrong."""
        self._see_who_waits(number, event)
        if isinstance(event, PhaseExpired):
            self._expiries[number] = event
            raise _Failed
        if isinstance(event, (Ended, Refused)):
            self._ended.add(number)
        if not isinstance(event, Ended):
            self.tell(event)
        if _is_failure(event):
            raise _Failed

    async def _collect(self) -> None:
        """Hear the other agents for a moment, then tell whose rank was silent, if one was."""
        if not self.is_cancelled and not self._is_over:
            for number in self._numbers:
                if self._expiries and number not in self._expiries:
                    self._send(number, DumpStacks())
            if self._expiries:
                await self._hear_rest(time.monotonic() + DUMP_S)
            else:
                await self._hear_rest(time.monotonic() + COLLECT_S, but_waiting=True)
        if self._expiries:
            waits = [each for each in self._expiries.values() if each.waits_at is not None]
            silent = [each for each in self._expiries.values() if each.waits_at is None]
            self.tell((silent or waits)[0])
            self._expiries.clear()

    async def _end(self) -> None:
        """Have every agent end its ranks; one that does not in time is given up."""
        if self._is_over:
            return
        self._is_over = True
        for number in self._numbers:
            if number not in self._ended:
                self._send(number, End())
        teardown_s = self.job.orders[0].order.limits.teardown_s
        await self._hear_rest(time.monotonic() + teardown_s + END_GRACE_S)
        for number in set(self._numbers) - self._ended:
            self._lose(number, "its ranks did not end in time", is_connected=True)
        self.tell(Ended())

    async def _hear_rest(self, deadline_s: float, *, but_waiting: bool = False) -> None:
        """Tell on what is still said, until every agent has ended or the time is over.

        `but_waiting`: those whose ranks wait have nothing to say.
        """
        while self._ended | (self._waiting if but_waiting else set()) != set(self._numbers):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            try:
                heard = await within(left_s, self.agents.events.get())
            except asyncio.TimeoutError:
                return
            if not self._is_of_this_life(heard):
                continue
            if heard.event is None:
                self._lose(heard.agent, heard.why)
                continue
            self._see_who_waits(heard.agent, heard.event)
            if isinstance(heard.event, PhaseExpired):
                self._expiries[heard.agent] = heard.event
            elif isinstance(heard.event, (Ended, Refused)):
                self._ended.add(heard.agent)
            elif isinstance(heard.event, (RankSaid, RankExited, RankLeft, LogFlooded, LogText)):
                self.tell(heard.event)

    def _is_of_this_life(self, heard: AgentEvent) -> bool:
        """An agent that is gone is so for any life; what it says is of that which it has taken."""
        if heard.agent not in self._numbers:
            return False
        if isinstance(heard.event, LaunchTaken):
            if heard.event.number == self.number:
                self._taken.add(heard.agent)
            return False
        return heard.event is None or heard.agent in self._taken

    def _see_who_waits(self, number: int, event: Event) -> None:
        """Whose ranks all wait for a trial, or at a mark?"""
        match event:
            case RanksWait():
                self._waiting.add(number)
            case RankSaid(rank=rank, message=message) if message.get("type") == "hello":
                greeted = self._greeted.setdefault(number, set())
                greeted.add(rank)
                order = next(each.order for each in self.job.orders if each.agent == number)
                if len(greeted) == len(order.ranks):
                    self._waiting.add(number)
            case _ if _is_failure(event):
                self._waiting.discard(number)
            case _:
                pass

    def _lose(self, number: int, why: str, *, is_connected: bool = False) -> None:
        if number not in self._ended:
            self._ended.add(number)
            self.tell(AgentLost(agent=number, message=why, is_connected=is_connected))

    def _send(self, number: int, order: Any) -> None:
        link = self.agents.link(number)
        if link is not None:
            link.send(order)


def life_begins(agents: Agents, job: Job, life_id: str, trials: Sequence[RunTrial]) -> LifeBegins:
    """With those of its agents that are there; `trials` are to be run in it."""
    links = [agents.link(each.agent) for each in job.orders]
    return LifeBegins(
        life_id=life_id,
        agents=tuple(link.hello for link in links if link is not None),
        first_trial=trials[0].command.trial_id,
    )


def _is_failure(event: Event) -> bool:
    match event:
        case RankExited(was_told_to=False) | LogFlooded() | Refused() | Ended():
            return True
        case RankSaid(message=message):
            return message.get("type") == "failed"
        case _:
            return False
