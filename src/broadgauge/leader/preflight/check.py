"""Are all machines fit for the launches to come, and does each reach every other one?

The leader tells all addresses to all, compares clocks, and sums up: agents call each other
themselves. Who does not answer in time is said, and costs nobody more than the limit.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from broadgauge.leader.agents import AgentEvent, Agents
from broadgauge.leader.clocks import compare_clocks
from broadgauge.leader.preflight.asked import Asked
from broadgauge.leader.preflight.checked import MOST_SETS, Checked, names_of
from broadgauge.leader.preflight.findings import failing_of, findings_of
from broadgauge.messages.leader import ClockReading
from broadgauge.messages.preflight import (
    CallLimits,
    CallOthers,
    ClosePreflight,
    OpenPreflight,
    OthersCalled,
    PreflightDone,
    PreflightOpened,
    PreflightOrder,
)
from broadgauge.messages.proof import new_token
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.messages.within import within

LIMIT_S = waiting_limit_s(30.0)
"""For all of it, where somebody does not answer; healthy machines take a second or two."""
OPEN_RATIO, CLOCKS_RATIO, CALL_RATIO = 0.35, 0.1, 0.12
"""Of the limit: for all to say where they listen; to compare clocks; for one call, of which there
are two tries."""
SLACK_RATIO = 0.05
"""For agents to say what came of it."""
Said = TypeVar("Said", PreflightOpened, OthersCalled)


@dataclass(slots=True, kw_only=True)
class Preflight:
    """One look at all machines."""

    agents: Agents
    asked: Asked
    number: int = 1
    """Answers have it."""
    limit_s: float = LIMIT_S
    _gone: dict[int, str] = field(default_factory=dict)
    """Agents that say nothing more, and why."""
    _is_cancelled: bool = False

    async def check(self) -> PreflightDone | None:
        """None: it was cancelled."""
        begun_s = time.monotonic()
        while not self.agents.events.empty():  # of what was before
            self.agents.events.get_nowait()
        opened = await self._open(begun_s + OPEN_RATIO * self.limit_s)
        clocks = await self._compare_clocks(opened)
        called = await self._call(opened, begun_s + self.limit_s)
        for number in self.asked.by_agent:
            self._send(number, ClosePreflight())
        if self._is_cancelled:
            return None
        last = max(self.asked.by_agent)
        names = names_of([self.agents.link(number) for number in range(last + 1)])
        checked = Checked(
            names=names,
            opened=opened,
            results=tuple(result for each in called.values() for result in each.results),
            clocks=clocks,
            silent=self._gone,
        )
        findings = findings_of(checked)
        return PreflightDone(
            lasted_s=time.monotonic() - begun_s,
            names=names,
            networks=self.asked.networks,
            num_calls=sum(result.is_tried for result in checked.results),
            findings=tuple(replace(each, agents=each.agents[:MOST_SETS]) for each in findings),
            failing=failing_of(findings, len(names)),
        )

    def cancel(self) -> None:
        """End it now. Whoever waits for agents is told by an event of nobody's."""
        self._is_cancelled = True

    async def _open(self, deadline_s: float) -> dict[int, PreflightOpened]:
        """What all say of themselves."""
        numbers = tuple(self.asked.by_agent)
        half_s = (deadline_s - time.monotonic()) / 2
        for number in await self.agents.wait_for(numbers, half_s):
            self._gone[number] = "it is not connected to the leader"
        left_s = deadline_s - time.monotonic()
        for number, networks in self.asked.by_agent.items():
            order = OpenPreflight(number=self.number, networks=networks, limit_s=0.8 * left_s)
            self._send(number, order)
        opened = await self._answers(PreflightOpened, numbers, deadline_s)
        for number, each in opened.items():
            if each.trouble is not None:
                self._gone[number] = each.trouble
        return {number: each for number, each in opened.items() if each.trouble is None}

    async def _compare_clocks(self, numbers: Iterable[int]) -> tuple[ClockReading, ...]:
        """All at once; of who does not answer soon nothing is known."""
        asking = [asyncio.ensure_future(compare_clocks(self.agents, [each])) for each in numbers]
        if not asking:
            return ()
        done, late = await asyncio.wait(asking, timeout=CLOCKS_RATIO * self.limit_s)
        for each in late:
            each.cancel()
        return tuple(reading for each in asking if each in done for reading in each.result())

    async def _call(
        self, opened: dict[int, PreflightOpened], deadline_s: float
    ) -> dict[int, OthersCalled]:
        """What all say of each other."""
        all_s = deadline_s - time.monotonic() - SLACK_RATIO * self.limit_s
        limits = CallLimits(one_s=CALL_RATIO * self.limit_s, all_s=all_s)
        nics = tuple(nic for each in opened.values() for nic in each.nics)
        order = CallOthers(number=self.number, nics=nics, key=new_token(), limits=limits)
        for number in () if self._is_cancelled else opened:
            self._send(number, order)
        called = await self._answers(OthersCalled, opened, deadline_s)
        self._gone |= {n: each.trouble for n, each in called.items() if each.trouble is not None}
        return called

    async def _answers(
        self, kind: type[Said], numbers: Iterable[int], deadline_s: float
    ) -> dict[int, Said]:
        """Of all of these, or of those that answer in time."""
        found: dict[int, Said] = {}
        while not self._is_cancelled:
            missing = set(numbers) - found.keys() - self._gone.keys()
            if not missing:
                break
            heard = await self._next(deadline_s)
            if heard is None:
                self._gone |= dict.fromkeys(missing, "it did not answer in time")
                break
            if heard.event is None and heard.agent in missing:
                self._gone[heard.agent] = heard.why
            elif isinstance(heard.event, kind) and heard.event.number == self.number:
                found[heard.agent] = heard.event
        return dict(sorted(found.items()))

    async def _next(self, deadline_s: float) -> AgentEvent | None:
        """None: nothing came in time."""
        events = self.agents.events
        if not events.empty():  # a limit that is over loses none, whatever Python does then
            return events.get_nowait()
        try:
            return await within(deadline_s - time.monotonic(), events.get())
        except asyncio.TimeoutError:
            return None

    def _send(self, number: int, order: PreflightOrder) -> None:
        link = self.agents.link(number)
        if link is not None:
            link.send(order)
