"""What does an agent do otherwise in a pod? It looks for its leader, and for each launch's network.

`python broadgauge.zip pod-agent --nodes 2 …` is the first process of a pod's container for ranks.
What it finds is said in words in the container's log. Exit code 0: its leader let it go; 1: it has
found no leader, or lost it; 2: it was not started as a pod of a run is; 143: SIGTERM.
"""

import argparse
import asyncio
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from broadgauge.agent.counters.rdma import TrialCounts
from broadgauge.agent.facts import HostFacts, read_facts
from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.on_host import AgentStart, HostAgent, LeaderRefused, hello
from broadgauge.agent.pod.facts import PodFacts, read_pod_facts
from broadgauge.agent.pod.first_process import (
    allow_locked_memory,
    leave_reason,
    prepare_folder,
    say_topology,
    without_launchers,
)
from broadgauge.agent.pod.network_start import find_network
from broadgauge.agent.pod.networks import add_tree_options
from broadgauge.agent.pod.resolve import ResolvedNetwork
from broadgauge.agent.preflight.part import LookedUpMachine
from broadgauge.agent.preflight.pod_networks import look_for_networks
from broadgauge.messages.adapters_used import AdaptersUsed
from broadgauge.messages.agent import AgentHello, End, Event, Order, Ready, Refused, RunTrial
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.codec import encode
from broadgauge.messages.frames import plain_line
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import INTERFACES_WORD
from broadgauge.messages.own_archive import version_of, zip_file
from broadgauge.messages.pod_log import say
from broadgauge.messages.pod_start import (
    WRONG_START,
    NoPlaceError,
    PodPlace,
    end_at_sigterm,
    run_parser,
    take_place,
)
from broadgauge.messages.preflight import CheckedNetwork

AGAIN_AFTER_S = 1.0
TELL_EVERY_S = 30.0


class PodAgent(HostAgent):
    """The agent of one pod."""

    def __init__(
        self,
        start: AgentStart,
        place: PodPlace,
        facts: HostFacts,
        *,
        meet_s: float,
        root: Path,
        annotations: str,
    ) -> None:
        """`facts`: of its machine. `root` and `annotations`: as read_pod_facts takes them."""
        super().__init__(start)
        self._place = place
        self._host_facts = facts
        self._meet_s = meet_s
        self._root = root
        self._annotations = annotations
        self._network: ResolvedNetwork | None = None
        """Of the launch that runs."""
        self._counts: TrialCounts | None = None
        """Of the trial that runs, where its network has adapters here."""
        self._search: asyncio.Task[None] | None = None
        """For the network of the launch to come."""
        self._search_ends = threading.Event()

    async def serve(self) -> None:
        """Until the leader is gone. Raises OSError, LeaderRefused."""
        try:
            await super().serve()
        finally:
            await self._end_search()

    async def _reach(self) -> asyncio.StreamReader:
        """Pods come up in any order, and names are known some time after them; until then the name
        may still be that of another's pod. Raises the last trouble where the leader does not answer
        in time."""
        start, begun_s = self._start, time.monotonic()
        told_s = begun_s
        where = f"the leader at {start.leader_address} port {start.leader_port}"
        while True:
            try:
                return await super()._reach()
            except (OSError, asyncio.TimeoutError, LeaderRefused, ValueError) as error:
                now_s, why = time.monotonic(), str(error) or "no answer"
                if now_s - begun_s > self._meet_s:
                    words = f"{where} did not answer for {self._meet_s:g} s: {why}"
                    raise ConnectionError(words) from error
            if now_s - told_s >= TELL_EVERY_S:
                told_s = now_s
                say(f"waiting for {where}, {now_s - begun_s:.0f} s so far: {why}")
            await asyncio.sleep(AGAIN_AFTER_S)

    def _hello(self) -> AgentHello:
        """With what the tool could not look at before."""
        place = self._place
        return replace(
            hello(self._start.version),
            facts=encode(self._host_facts),
            place={"node": place.node_name, "pod": place.pod_name, "address": place.address},
        )

    def _tell_starter(self) -> None:
        """Nobody waits for a line, but people look."""
        say(f"node {self._place.node} is {self._place.pod_name} on {self._place.node_name}")

    async def _obey(self, order: Order) -> None:
        if isinstance(order, (LaunchOrder, End)):
            await self._end_search()
        if isinstance(order, RunTrial) and self._counts is not None:
            self._counts.begin()
        if isinstance(order, LaunchOrder):
            self._network = self._counts = None
            asked = next((node.network for node in order.nodes if node.network), None)
            if asked is not None:
                await self._make_way(order)
                self._search_ends.clear()
                self._search = asyncio.create_task(self._find_and_begin(order, asked))
                return
        await super()._obey(order)

    def _look(self, networks: tuple[CheckedNetwork, ...], limit_s: float) -> LookedUpMachine:
        def read(given: Mapping[str, str]) -> PodFacts:
            return read_pod_facts(self._root, os.environ | given, self._annotations)

        return look_for_networks(networks, read, limit_s)

    async def _find_and_begin(self, order: LaunchOrder, asked: AskedNetwork) -> None:
        """In a thread: it may wait for minutes, and other orders come meanwhile."""
        loop = asyncio.get_running_loop()
        told = await loop.run_in_executor(None, self._look_for, order, asked)
        if told is None:
            return
        found, facts = told
        if found.problems:
            self._is_over = True
            self._pass_on(refusal(self._place, found))
            return
        self._network = found
        if found.adapters:
            self._counts = TrialCounts(found.adapters, facts, self._root)
        await self._begin(with_network(order, found))

    def _look_for(
        self, order: LaunchOrder, asked: AskedNetwork
    ) -> tuple[ResolvedNetwork, PodFacts] | None:
        """None: nobody wants to know any more."""

        def sleep(pause_s: float) -> None:
            if self._search_ends.wait(pause_s):
                raise _SearchEnded

        def read() -> PodFacts:
            return read_pod_facts(self._root, given_to_ranks(order), self._annotations)

        try:
            return find_network(asked, read, lambda line: say(f"{order.launch_id}: {line}"), sleep)
        except _SearchEnded:
            return None

    async def _end_search(self) -> None:
        """Nobody waits for its outcome any more. Raises what went wrong in it."""
        search, self._search = self._search, None
        if search is not None:
            self._search_ends.set()
            await asyncio.wait({search})
            if not search.cancelled():
                search.result()

    def _last_of_trial(self) -> Iterable[Event]:
        ports = () if self._counts is None else self._counts.end()
        used = [AdaptersUsed(node=self._place.node, ports=ports)] if ports else []
        return (*super()._last_of_trial(), *used)

    def _pass_on(self, event: Event) -> None:
        if isinstance(event, Ready) and self._network is not None:
            event = replace(event, variables=self._network.variables)
        super()._pass_on(event)


class _SearchEnded(Exception):  # noqa: N818  says what is so
    """The launch whose network was looked for is not wanted any more."""


def given_to_ranks(order: LaunchOrder) -> dict[str, str]:
    """What users have set of a rank's variables, in the pod or in the experiment: what is found is
    held against it. What is filled in here is none of it."""
    ranks = order.ranks[0].environment if order.ranks else {}
    given: Iterable[tuple[str, str]] = (os.environ | order.environment | ranks).items()
    return {name: value for name, value in given if INTERFACES_WORD not in value}


def refusal(place: PodPlace, network: ResolvedNetwork) -> Refused:
    """Of a launch, with the pod, its node and the network said once."""
    where, told = f"{place.pod_name} on {place.node_name}", "; ".join(network.problems)
    return Refused(
        message=plain_line(f"{where}: network {network.name}: {told}"),
        hint="no rank was started; the pod's own log has what was found of its network",
    )


def with_network(order: LaunchOrder, network: ResolvedNetwork) -> LaunchOrder:
    """The order with what its network is here; what the experiment sets stays as it is."""
    word = ",".join(network.interfaces)

    def filled(variables: Mapping[str, str]) -> dict[str, str]:
        return {name: value.replace(INTERFACES_WORD, word) for name, value in variables.items()}

    return replace(
        order,
        nodes=tuple(
            replace(node, interfaces=network.interfaces, network=None) for node in order.nodes
        ),
        ranks=tuple(replace(rank, environment=filled(rank.environment)) for rank in order.ranks),
        environment=network.variables | filled(order.environment),
    )


def parser() -> argparse.ArgumentParser:
    """Of what the manifest says."""
    found = run_parser("pod-agent")
    found.add_argument("--folder", type=Path, required=True, help="where ranks run")
    found.add_argument("--files", type=Path, help="copied to that folder before")
    found.add_argument("--subfolder", default="", help="of the folder: ranks run there")
    add_tree_options(found)
    return found


def main() -> int:
    """Serve one leader, and leave nothing."""
    end_at_sigterm()
    options = parser().parse_args()
    try:
        place = take_place(os.environ, options.nodes)
        working = prepare_folder(options.folder, options.files, options.subfolder)
    except NoPlaceError as error:
        say(str(error))
        leave_reason(options.root, str(error))
        return WRONG_START
    for name in os.environ.keys() - without_launchers(os.environ).keys():
        del os.environ[name]
    say_topology(os.environ.get("NCCL_TOPO_FILE", ""), Tree(Path("/")))
    allow_locked_memory()
    start = _agent_start(options, place, working)
    agent = PodAgent(
        start,
        place,
        read_facts(),
        meet_s=options.meet_s,
        root=options.root,
        annotations=options.annotations,
    )
    try:
        asyncio.run(agent.serve())
    except (OSError, LeaderRefused, asyncio.TimeoutError) as error:
        words = f"node {place.node} ends: {str(error) or type(error).__name__}"
        say(words)
        leave_reason(options.root, words)
        return 1
    finally:
        shutil.rmtree(start.folder, ignore_errors=True)
    return 0


def _agent_start(options: argparse.Namespace, place: PodPlace, working: Path) -> AgentStart:
    archive = zip_file()
    assert archive is not None, "a pod has the zip file and nothing else of ours"
    folder = options.scratch / "agent"
    logs = str(folder / "logs")
    return AgentStart(
        number=place.node,
        # The containers of a pod share its network: its leader needs no name there.
        leader_address="127.0.0.1" if place.node == 0 else options.leader,
        leader_port=options.port,
        token=place.token,
        version=version_of(archive.read_bytes()),
        folder=str(folder),
        supervisor=(sys.executable, str(archive), "supervise", logs, str(working)),
        logs=logs,
        working_folder=str(working),
        secrets={},
    )


if __name__ == "__main__":
    sys.exit(main())
