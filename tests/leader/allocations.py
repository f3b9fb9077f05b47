"""A leader and its agents as processes of this machine, for tests."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from broadgauge.agent.on_host import AgentStart
from broadgauge.leader.main import LeaderStart
from broadgauge.messages.agent import RunTrial
from broadgauge.messages.launch_order import LaunchOrder, Mode, NodePlan, PhaseLimits, RankPlan
from broadgauge.messages.leader import LIFE_WORD, AgentOrder, Job, TakeJobs
from broadgauge.messages.proof import new_token
from broadgauge.messages.rank import TrialCommand
from broadgauge.messages.tasks import CommandTask, RankLayout
from broadgauge.messages.unix_sockets import short_path
from broadgauge.platforms.led.leader_link import ByteStream, LeaderLink

FAKE = (sys.executable, "-m", "tests.leader.fake_supervisor")
LIMITS = PhaseLimits(rendezvous_s=60, warm_up_s=60, measure_s=60, teardown_s=10)
HANG_S = 300.0
"""Longer than anything here takes on any machine."""
ROOT = Path(__file__).parents[2]


class Allocation:
    """One leader and `num_agents` agents, ended with the test."""

    def __init__(self, folder: Path, num_agents: int = 2, *, pause_s: float = 0.0) -> None:
        self.folder, self.token = folder, new_token()
        self.supervisor = (*FAKE, f"pause={pause_s}")
        self.leader_folder = folder / "leader"
        self.leader_folder.mkdir(mode=0o700)
        self.spool = self.leader_folder / "spool"
        start = LeaderStart(
            folder=str(self.leader_folder),
            address="127.0.0.1",
            token=self.token,
            version="test",
            keep_s=60.0,
        )
        self.leader = _start("broadgauge.leader.main", start)
        assert self.leader.stdout is not None
        self.port = int(json.loads(self.leader.stdout.readline())["port"])
        self.agents = [self.start_agent(number) for number in range(num_agents)]
        for agent in self.agents:
            wait_until_it_is_there(agent)

    def start_agent(
        self, number: int, token: str | None = None, first_path: str = "", again: str = ""
    ) -> "subprocess.Popen[str]":
        """`first_path`: where its Python looks for packages first. `again`: of a second one."""
        folder = self.folder / f"agent{number}-{token or 'own'}{again}"
        folder.mkdir(mode=0o700, exist_ok=True)
        start = AgentStart(
            number=number,
            leader_address="127.0.0.1",
            leader_port=self.port,
            token=token or self.token,
            version="test",
            folder=str(folder),
            supervisor=self.supervisor,
            logs=str(folder / "logs"),
            working_folder=str(ROOT),
            secrets={},
        )
        return _start("broadgauge.agent.on_host", start, first_path)

    def attach(self, after: int = -1) -> LeaderLink:
        """As a tool does."""
        joined = socket.socket(socket.AF_UNIX)
        with short_path(self.leader_folder / "socket") as there:
            joined.connect(there)
        fd = joined.detach()
        return LeaderLink(ByteStream(reading=fd, writing=fd), after)

    def close(self) -> None:
        for process in (self.leader, *self.agents):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def wait_until_it_is_there(agent: "subprocess.Popen[str]") -> None:
    """Its one line comes when it and the leader have proved that they know the token."""
    assert agent.stdout is not None
    assert "pid" in json.loads(agent.stdout.readline())


def _start(module: str, start: Any, first_path: str = "") -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{first_path or ROOT}:{ROOT}/src:{ROOT}"},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(start)) + "\n")
    process.stdin.flush()
    return process


def job(
    name: str,
    trials: Sequence[str],
    num_nodes: int = 2,
    *,
    interfaces: tuple[str, ...] = (),
    network_name: str = "",
    **variables: str,
) -> Job:
    """One rank a node; trials by what they are to do (fake_supervisor.py)."""
    orders = (_launch(node, num_nodes, interfaces, variables) for node in range(num_nodes))
    return Job(
        job_id=name,
        first_life=0,
        num_ranks=num_nodes,
        orders=tuple(
            AgentOrder(agent=node, order=replace(order, network_name=network_name))
            for node, order in enumerate(orders)
        ),
        trials=tuple(trial(f"{name}.{word}") for word in trials),
    )


def _launch(
    node: int, num_nodes: int, interfaces: tuple[str, ...], variables: dict[str, str]
) -> LaunchOrder:
    return LaunchOrder(
        launch_id=LIFE_WORD,
        mode=Mode.PLAIN,
        num_nodes=num_nodes,
        nodes=(NodePlan(node=node, cores=(), interfaces=interfaces),),
        ranks=(
            RankPlan(rank=node, node=node, program="worker", environment={}, log=f"{node}.log"),
        ),
        environment=variables,
        link=None,
        limits=LIMITS,
    )


def trial(trial_id: str) -> RunTrial:
    task = CommandTask(command=("true",), metrics=(), working_directory=None)
    layout = RankLayout(nodes=2, ranks_per_node=1, device="cpu", backend="gloo")
    command = TrialCommand(
        trial_id=trial_id, task=task, layout=layout, seed=0, process_group_timeouts_s={}
    )
    return RunTrial(command=command, link=None)


def run_jobs(link: LeaderLink, *jobs: Job, generation: int = 0) -> list[dict[str, Any]]:
    """Every event up to `jobs_done`."""
    link.send(TakeJobs(generation=generation, jobs=jobs))
    return events_until(link, "jobs_done")


def events_until(link: LeaderLink, kind: str, timeout_s: float = HANG_S) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] != kind:
        spooled = link.receive(timeout_s)
        assert spooled is not None, f"no {kind} came, but {[each['type'] for each in found]}"
        found.append(spooled.event)
    return found
