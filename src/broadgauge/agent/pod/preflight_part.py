"""What does an agent do in the check of all pairs? It listens, calls its part, and remembers which
networks are not to be used."""

import asyncio
import time
from collections.abc import Callable

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.preflight import (
    Listeners,
    answering,
    open_listeners,
    rdma_readiness,
    run_probes,
)
from broadgauge.agent.pod.preflight_plan import plan_probes
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.messages.agent import Event
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.preflight import (
    ClosePreflight,
    NetworkProblem,
    OpenPreflight,
    PreflightOpened,
    PreflightRan,
    RunPreflight,
)

LATE_STATUS_RATIO = 0.5
"""Of the time limit: so long a pod waits for the annotation that names its interfaces."""
LOOK_AGAIN_S = 0.5

PreflightOrder = OpenPreflight | RunPreflight | ClosePreflight


class PreflightPart:
    """Of one agent."""

    def __init__(
        self, node: int, read_facts: Callable[[], PodFacts], send: Callable[[Event], None]
    ) -> None:
        self._node = node
        self._read_facts = read_facts
        self._send = send
        self._listeners: Listeners | None = None
        self._is_over = asyncio.Event()
        self._calling: asyncio.Task[None] | None = None
        self._problems: tuple[NetworkProblem, ...] = ()

    async def obey(self, order: PreflightOrder) -> None:
        """Do what the leader says next."""
        if isinstance(order, OpenPreflight):
            await self._open(order)
        elif isinstance(order, RunPreflight):
            self._calling = asyncio.create_task(self._call(order))
        else:
            self._problems = order.problems
            await self.close()

    def problems_of(self, order: LaunchOrder) -> tuple[str, ...]:
        """Why this launch is not to be started."""
        if order.network is None:
            return ()
        return tuple(
            each.text
            for each in self._problems
            if each.network == order.network.name and each.concerns(order.num_nodes)
        )

    async def close(self) -> None:
        """Answer nobody any more."""
        self._is_over.set()
        if self._calling is not None:
            await self._calling
            self._calling = None
        if self._listeners is not None:
            self._listeners.close()
            self._listeners = None

    async def _open(self, order: OpenPreflight) -> None:
        await self.close()
        self._is_over.clear()
        found, facts = await self._resolved(order)
        error = None
        try:
            self._listeners = open_listeners(self._node, found, facts)
        except OSError as failure:
            error = f"it can't listen: {failure.strerror or failure}"
        self._send(
            PreflightOpened(
                addresses=() if self._listeners is None else self._listeners.addresses,
                readiness=tuple(rdma_readiness(self._node, each, facts) for each in found),
                error=error,
            )
        )

    async def _resolved(self, order: OpenPreflight) -> tuple[list[ResolvedNetwork], PodFacts]:
        """An annotation that is mounted may come some seconds after the pod's start."""
        late_s = time.monotonic() + LATE_STATUS_RATIO * order.limit_s
        while True:
            facts = self._read_facts()
            found = [resolve(network, facts) for network in order.networks]
            is_late = facts.status is None and any(each.problems for each in found)
            if not is_late or time.monotonic() > late_s:
                return found, facts
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _call(self, order: RunPreflight) -> None:
        if self._listeners is None:  # it said so
            self._send(PreflightRan(results=()))
            return
        async with answering(self._listeners, order.key):
            probes = plan_probes(order.addresses, self._node)
            results = await run_probes(probes, order.key, order.limit_s)
            self._send(PreflightRan(results=results))
            await self._is_over.wait()
