"""Do all agents know, before the first launch, which networks do not carry?"""

import asyncio
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.leader.allocations import job

from broadgauge.agent.pod import preflight_part
from broadgauge.agent.pod.facts import PodFacts, read_pod_facts
from broadgauge.agent.pod.preflight_part import PreflightPart
from broadgauge.agent.pod.resolve import ResolvedNetwork
from broadgauge.leader import preflight
from broadgauge.leader.agents import AgentEvent
from broadgauge.leader.preflight import Preflight, networks_of
from broadgauge.messages.agent import EVENT, ORDER, Event
from broadgauge.messages.codec import encode
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import LIFE_EVENT
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.messages.preflight import PreflightDone, RunPreflight

FABRIC = PodNetwork(name="fabric")
PAIRS = tuple((a, b) for a in (0, 1, 3) for b in (0, 1, 3))


@dataclass(slots=True)
class OneLink:
    """To a part that answers as an agent does; orders and events cross it as JSON."""

    part: PreflightPart
    is_cut: bool = False
    is_deaf: bool = False
    """Its listener is gone before anybody calls."""

    def send(self, order: Any) -> None:
        if not self.is_cut:
            as_heard: Any = ORDER(json.loads(json.dumps(encode(order))))
            TASKS.append(asyncio.ensure_future(self._obey(as_heard)))

    async def _obey(self, order: Any) -> None:
        if self.is_deaf and isinstance(order, RunPreflight):
            assert self.part._listeners is not None
            self.part._listeners.close()
        await self.part.obey(order)


TASKS: list["asyncio.Future[None]"] = []


@dataclass(slots=True)
class SomeAgents:
    """Pods of this machine's loopback."""

    folder: Path
    links: dict[int, OneLink] = field(default_factory=dict)
    events: "asyncio.Queue[AgentEvent]" = field(default_factory=asyncio.Queue)

    def add(self, number: int) -> None:
        def send(event: Event) -> None:
            heard = EVENT(json.loads(json.dumps(encode(event))))
            self.events.put_nowait(AgentEvent(agent=number, event=heard))

        part = PreflightPart(number, lambda: facts_of(self.folder, number), send)
        self.links[number] = OneLink(part)

    def link(self, number: int) -> OneLink | None:
        return self.links.get(number)


def facts_of(folder: Path, number: int) -> PodFacts:
    return read_pod_facts(folder, "", environ={"NODE": str(number)})


def check(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    *,
    num_pods: int = 3,
    cut: tuple[int, ...] = (),
    deaf: tuple[int, ...] = (),
    problems: tuple[str, ...] = (),
    limit_s: float = 10.0,
) -> tuple[PreflightDone, dict[int, tuple[str, ...]]]:
    """What the leader keeps, and why each agent would refuse a launch on all pods."""
    numbers = iter(range(num_pods))

    def resolved(network: PodNetwork, facts: PodFacts) -> ResolvedNetwork:
        del facts
        address = f"127.1.0.{next(numbers) + 1}"
        return ResolvedNetwork(
            name=network.name, interfaces=("net1",), addresses=(address,), problems=problems
        )

    monkeypatch.setattr(preflight_part, "resolve", resolved)

    async def both() -> tuple[PreflightDone, dict[int, tuple[str, ...]]]:
        agents = SomeAgents(folder)
        for number in range(num_pods):
            agents.add(number)
        for number in cut:
            agents.links[number].is_cut = True
        for number in deaf:
            agents.links[number].is_deaf = True
        one = Preflight(
            agents=agents,  # type: ignore[arg-type]
            numbers=tuple(range(num_pods)),
            limit_s=limit_s,
        )
        done = await one.check((FABRIC,))
        await asyncio.gather(*TASKS)
        TASKS.clear()
        refusals = {
            number: link.part.problems_of(order(num_pods)) for number, link in agents.links.items()
        }
        return done, refusals

    return asyncio.run(both())


def order(num_nodes: int) -> LaunchOrder:
    return replace(job("j", [], num_nodes).orders[0].order, network=FABRIC)


def test_pods_that_all_answer_may_launch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done, refusals = check(monkeypatch, tmp_path)
    assert (done.num_pods, done.num_networks, done.num_calls) == (3, 1, 3)
    assert done.problems == done.notes == ()
    assert set(refusals.values()) == {()}
    assert done.lines[0].endswith("s: all of them answered")
    assert LIFE_EVENT(json.loads(json.dumps(encode(done)))) == done


def test_what_a_pod_lacks_is_refused_by_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preflight_part, "LATE_STATUS_RATIO", 0.0)
    done, refusals = check(monkeypatch, tmp_path, problems=("no RDMA adapter",))
    (problem,) = done.problems
    assert problem.text == "network fabric, nodes 0, 1, 2: no RDMA adapter"
    assert set(refusals.values()) == {(problem.text,)}


def test_a_pod_that_nobody_reaches_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done, refusals = check(monkeypatch, tmp_path, num_pods=4, deaf=(2,))
    texts = [each.text for each in done.problems]
    assert any("node 2" in text for text in texts), texts
    assert not any(f"node {a} does not reach node {b}" in text for text in texts for a, b in PAIRS)
    assert all(refusals.values())


def test_a_silent_agent_costs_its_time_limit_and_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preflight, "ANSWER_S", 0.1)
    done, refusals = check(monkeypatch, tmp_path, num_pods=3, cut=(1,), limit_s=2.0)
    assert done.notes == ("node 1 was not checked: it did not answer in time",)
    assert done.num_calls == 1
    assert refusals[0] == ()


def test_networks_that_no_launch_crosses_are_left_out() -> None:
    def with_network(num_nodes: int, network: PodNetwork | None) -> Any:
        made = job("j", [], num_nodes)
        orders = tuple(
            replace(each, order=replace(each.order, network=network)) for each in made.orders
        )
        return replace(made, orders=orders)

    vnic = PodNetwork(name="vnic", attachments=("vnic",))
    jobs = [with_network(2, FABRIC), with_network(1, vnic), with_network(2, None)]
    assert networks_of(jobs) == (FABRIC,)
    assert networks_of([*jobs, with_network(2, vnic)]) == (FABRIC, vnic)
