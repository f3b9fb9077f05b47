"""What does an agent do otherwise in a pod? It looks for its leader, and for each launch's network.

Its standard output is the pod's log: what it finds is said there in words, beside the leader's
frames.
"""

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path

from broadgauge.agent.facts import read_facts
from broadgauge.agent.on_host import READ_BYTES, AgentStart, HostAgent, hello
from broadgauge.agent.pod.facts import PodFacts, read_pod_facts
from broadgauge.agent.pod.networks import describe
from broadgauge.agent.pod.place import PodPlace
from broadgauge.agent.pod.preflight_part import PreflightPart
from broadgauge.agent.pod.rdma_check import TrialCounts
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.messages.agent import AgentHello, Event, Order, Ready, Refused, RunTrial
from broadgauge.messages.codec import encode
from broadgauge.messages.frames import plain_line
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import INTERFACES_WORD
from broadgauge.messages.preflight import ClosePreflight, OpenPreflight, RunPreflight
from broadgauge.messages.rdma_use import AdaptersUsed

AGAIN_AFTER_S = 1.0
CONNECT_LIMIT_S = 5.0


class PodAgent(HostAgent):
    """The agent of one pod."""

    def __init__(self, start: AgentStart, place: PodPlace) -> None:
        super().__init__(start)
        self._place = place
        self._facts: PodFacts | None = None
        self._network: ResolvedNetwork | None = None
        """Of the launch that runs."""
        self._counts: TrialCounts | None = None
        """Of the trial that runs, where its network has adapters here."""
        self._preflight = PreflightPart(start.number, self._read_facts, self._send)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Pods come up in any order, and names are known some time after them.

        Raises OSError where the leader does not answer in time.
        """
        start, deadline_s = self._start, time.monotonic() + self._place.meet_s
        while True:
            try:
                way = asyncio.open_connection(
                    start.leader_address, start.leader_port, limit=READ_BYTES
                )
                return await asyncio.wait_for(way, CONNECT_LIMIT_S)
            except (OSError, asyncio.TimeoutError) as error:
                if time.monotonic() > deadline_s:
                    raise ConnectionError(
                        f"the leader at {start.leader_address} port {start.leader_port} did not "
                        f"answer for {self._place.meet_s:g} s: {str(error) or 'no answer'}"
                    ) from error
            await asyncio.sleep(AGAIN_AFTER_S)

    def _hello(self) -> AgentHello:
        """With what the tool could not look at before."""
        place = self._place
        return replace(
            hello(self._start.version),
            facts=encode(read_facts()),
            place={"node": place.node_name, "pod": place.pod_name, "address": place.own_address},
        )

    def _tell_starter(self) -> None:
        """Nobody waits for a line."""
        say(f"node {self._place.number} is {self._place.pod_name} on {self._place.node_name}")

    async def _obey(self, order: Order) -> None:
        if isinstance(order, (OpenPreflight, RunPreflight, ClosePreflight)):
            await self._preflight.obey(order)
            return
        if isinstance(order, LaunchOrder):
            self._network = self._look_for(order)
            if self._network is not None:
                problems = self._network.problems or self._preflight.problems_of(order)
                if problems:
                    self._refuse(self._network.name, problems)
                    return
                order = with_network(order, self._network)
        elif isinstance(order, RunTrial) and self._counts is not None:
            self._counts.begin()
        await super()._obey(order)

    def _read_facts(self) -> PodFacts:
        """Once; again while the annotation, which is mounted, is not there yet."""
        if self._facts is None or self._facts.status is None:
            self._facts = read_pod_facts(annotations=_text(self._place.annotations))
        return self._facts

    def _look_for(self, order: LaunchOrder) -> ResolvedNetwork | None:
        """None: the launch has none between nodes."""
        self._counts = None
        if order.network is None:
            return None
        facts = self._read_facts()
        found = resolve(order.network, facts)
        for line in describe(found):
            say(f"{order.launch_id}: {line}")
        self._counts = TrialCounts.of(order.network, found.adapters, facts)
        return found

    def _refuse(self, network: str, problems: tuple[str, ...]) -> None:
        self._is_over = True
        self._pass_on(refusal(self._place, network, problems))

    def _last_of_trial(self) -> list[Event]:
        """With what the adapters' counters say."""
        use = None if self._counts is None else self._counts.end()
        if use is None:
            return super()._last_of_trial()
        for line in (*use.problems, *use.notes):
            say(f"network {use.network}: {line}")
        return [*super()._last_of_trial(), AdaptersUsed(node=self._start.number, use=use)]

    def _pass_on(self, event: Event) -> None:
        if isinstance(event, Ready) and self._network is not None:
            event = replace(event, variables=self._network.variables)
        super()._pass_on(event)


def refusal(place: PodPlace, network: str, problems: tuple[str, ...]) -> Refused:
    """Of a launch, with the pod, its node and the network said once."""
    told = "; ".join(each.removeprefix(f"network {network}").lstrip(":, ") for each in problems)
    return Refused(
        message=f"{place.pod_name} on {place.node_name}: network {network}: {told}",
        hint="nothing was trained; `broadgauge logs RUN --pod`: what the first pod has",
    )


def with_network(order: LaunchOrder, network: ResolvedNetwork) -> LaunchOrder:
    """The order with what its network is here; what the experiment sets stays as it is."""
    word = ",".join(network.interfaces)

    def filled(variables: dict[str, str]) -> dict[str, str]:
        return {name: value.replace(INTERFACES_WORD, word) for name, value in variables.items()}

    return replace(
        order,
        nodes=tuple(replace(node, interfaces=network.interfaces) for node in order.nodes),
        ranks=tuple(replace(rank, environment=filled(rank.environment)) for rank in order.ranks),
        environment=network.variables | filled(order.environment),
    )


def _text(path: Path) -> str | None:
    """None: nothing is mounted there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def say(text: str) -> None:
    """A line of the pod's log, in UTF-8 whatever the image's locale is."""
    sys.stdout.buffer.write(f"broadgauge: {plain_line(text)}\n".encode())
    sys.stdout.buffer.flush()
