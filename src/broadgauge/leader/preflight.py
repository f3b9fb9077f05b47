"""Does each agent reach every other one over every network, before the first launch?

The leader only tells all addresses to all, and sums up: agents call each other themselves.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from broadgauge.leader.agents import Agents
from broadgauge.leader.preflight_summary import summarize
from broadgauge.messages.leader import Job
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.messages.preflight import (
    ClosePreflight,
    OpenPreflight,
    PreflightDone,
    PreflightOpened,
    PreflightRan,
    RunPreflight,
)
from broadgauge.messages.proof import new_token

ANSWER_S = 5.0
"""For an agent to say what it found, beyond the time it may look for it."""
Said = TypeVar("Said", PreflightOpened, PreflightRan)


def networks_of(jobs: Sequence[Job]) -> tuple[PodNetwork, ...]:
    """That agents have to look for and launches cross, each once."""
    return tuple(
        dict.fromkeys(
            each.order.network
            for job in jobs
            for each in job.orders
            if each.order.network is not None and each.order.num_nodes > 1
        )
    )


@dataclass(slots=True, kw_only=True)
class Preflight:
    """One check of all pairs."""

    agents: Agents
    numbers: tuple[int, ...]
    """Of the agents that are there."""
    limit_s: float
    _gone: dict[int, str] = field(default_factory=dict)
    """Agents that say nothing more, and why."""
    _begun_s: float = field(default_factory=time.monotonic)

    async def check(self, networks: tuple[PodNetwork, ...]) -> PreflightDone:
        """Every agent knows afterwards which launches it is to refuse."""
        self._send_all(OpenPreflight(networks=networks, limit_s=self.limit_s))
        opened = await self._answers(PreflightOpened, self.limit_s / 2)
        addresses = tuple(address for each in opened.values() for address in each.addresses)
        left_s = max(self._begun_s + self.limit_s - time.monotonic(), 1.0)
        self._send_all(RunPreflight(addresses=addresses, key=new_token(), limit_s=left_s))
        ran = await self._answers(PreflightRan, left_s)
        results = tuple(result for each in ran.values() for result in each.results)
        readiness = [each for said in opened.values() for each in said.readiness]
        summary = summarize(addresses, results, readiness)
        self._send_all(ClosePreflight(problems=summary.problems))
        return PreflightDone(
            lasted_s=time.monotonic() - self._begun_s,
            num_pods=len(self.numbers),
            num_networks=len(networks),
            num_calls=len(results),
            problems=summary.problems,
            notes=(*summary.notes, *self._silent(opened)),
        )

    async def _answers(self, kind: type[Said], limit_s: float) -> dict[int, Said]:
        """Of all agents, or of those that answer in time."""
        found: dict[int, Said] = {}
        deadline_s = time.monotonic() + limit_s + ANSWER_S
        while set(self.numbers) - found.keys() - self._gone.keys():
            try:
                heard = await asyncio.wait_for(
                    self.agents.events.get(), deadline_s - time.monotonic()
                )
            except asyncio.TimeoutError:
                for number in set(self.numbers) - found.keys() - self._gone.keys():
                    self._gone[number] = "it did not answer in time"
                break
            if heard.event is None:
                self._gone[heard.agent] = heard.why
            elif isinstance(heard.event, kind):
                found[heard.agent] = heard.event
        return found

    def _silent(self, opened: dict[int, PreflightOpened]) -> tuple[str, ...]:
        """What is not known of whom."""
        errors = {number: each.error for number, each in opened.items() if each.error is not None}
        return tuple(
            f"node {number} was not checked: {why}"
            for number, why in sorted((errors | self._gone).items())
        )

    def _send_all(self, order: OpenPreflight | RunPreflight | ClosePreflight) -> None:
        for number in self.numbers:
            link = self.agents.link(number)
            if link is not None:
                link.send(order)
