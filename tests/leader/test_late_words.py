"""Proves that what an agent says late of a launch that is over is not taken for the next one's."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.leader.allocations import job, trial

from broadgauge.leader.agents import AgentEvent
from broadgauge.leader.job_words import with_words
from broadgauge.leader.launch_life import LaunchLife
from broadgauge.messages.agent import (
    PROTOCOL_VERSION,
    AgentHello,
    ClockTold,
    End,
    Ended,
    Event,
    LaunchTaken,
    RankExited,
    RankSaid,
    Ready,
    Refused,
    RunTrial,
    TrialStarts,
)
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import LIFE_WORD

LATE: tuple[Event, ...] = (
    Refused(message="the supervisor of the ranks ended with exit code 0", hint=None),
    Ended(),
    RankExited(rank=0, exit_code=1, signal=None, was_told_to=False),
    RankSaid(rank=0, message={"type": "failed"}),
)
HELLO = AgentHello(
    protocol=PROTOCOL_VERSION,
    version="test",
    python="3.11",
    hostname="here",
    pid=1,
    kernel="6.1",
    cores=2,
    memory_bytes=2**30,
)


@dataclass
class LateAgents:
    """One agent whose last words of the launch before come when the next has been ordered."""

    late: Sequence[Event]
    events: "asyncio.Queue[AgentEvent]" = field(default_factory=asyncio.Queue)
    hello: AgentHello = HELLO

    async def wait_for(self, agents: object, limit_s: float) -> list[int]:
        del agents, limit_s
        return []

    async def ask_clock(self, agent: int, limit_s: float) -> ClockTold | None:
        del agent, limit_s
        return None

    def link(self, agent: int) -> "LateAgents":
        del agent
        return self

    def send(self, order: Any) -> None:
        match order:
            case LaunchOrder(number=number):
                self._say(*self.late, LaunchTaken(number=number), Ready(notes=()))
                self._say(RankSaid(rank=0, message={"type": "hello"}))
            case RunTrial():
                self._say(TrialStarts(facts=None), RankSaid(rank=0, message={"type": "done"}))
            case End():
                self._say(Ended())
            case _:
                raise AssertionError(order)

    def _say(self, *events: Event) -> None:
        for event in events:
            self.events.put_nowait(AgentEvent(agent=0, event=event))


def lived(agents: LateAgents, tell: Callable[[Any], None], *, is_cancelled: bool = False) -> bool:
    """Did a launch of one trial come up?"""
    one = with_words(job("next", [], 1), {LIFE_WORD: "next"})
    life = LaunchLife(agents=agents, job=one, life_id="next", tell=tell, number=2)  # type: ignore[arg-type]
    life.is_cancelled = is_cancelled
    return asyncio.run(life.live([trial("next.t0")]))


@pytest.mark.parametrize("late", LATE, ids=lambda event: event.type)
def test_late_words_of_one_launch_are_not_the_next_ones(late: Event) -> None:
    told: list[Any] = []
    assert lived(LateAgents(late=[late]), told.append)
    kinds = [event.type for event in told]
    assert kinds.count("trial_ends") == 1
    assert kinds[-2:] == ["ended", "life_ends"]
    assert late not in told[:-2]
    assert any(isinstance(e, RankSaid) and e.message["type"] == "done" for e in told)


def test_a_launch_before_that_was_taken_late_is_not_this_one() -> None:
    """Its own words follow, and both may have one id: they count when the agent has taken this."""
    told: list[Any] = []
    assert lived(LateAgents(late=[LaunchTaken(number=1), *LATE]), told.append)
    assert not any(isinstance(event, (Refused, RankExited)) for event in told)


def test_one_that_is_not_wanted_any_more_hears_its_agents_end() -> None:
    """What it hears first is that the launch was taken, and it gives up at that."""
    told: list[Any] = []
    assert not lived(LateAgents(late=[]), told.append, is_cancelled=True)
    kinds = [event.type for event in told]
    assert kinds[-2:] == ["ended", "life_ends"]
    assert "agent_lost" not in kinds
