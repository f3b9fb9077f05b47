"""Two pods of one job as processes of this machine: a leader and two agents of the zip file.

Under the oldest Python that they may meet, with nothing else of ours. A rank is a program of the
test's.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests import pythons
from tests.agent.pod.pods import entry, facts_of, pod, status
from tests.agent.test_zip_file import LIMITS, PATIENT, RANK
from tests.leader import allocations
from tests.timeouts import HANG_S

from broadgauge.agent import bundle
from broadgauge.manifests.run_job import order_key
from broadgauge.messages.agent import RunTrial
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.free_port import free_port
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import MASTER_WORD, PORT_WORD, Job, LeaderOrder
from broadgauge.messages.proof import new_token
from broadgauge.messages.rank import TrialCommand
from broadgauge.messages.tasks import CommandTask, MetricSource, RankLayout
from broadgauge.messages.vocabulary import Phase
from broadgauge.platforms.kubernetes.leader_log import LogLink, LogPump
from broadgauge.platforms.kubernetes.orders import order_bytes

GIVEN = MetricSource(
    name="given_count", regex=r"given (\d+)", comma=None, json_key=None, skip_first=0
)


class Pods:
    """Two pods of one job, of which the first has a leader beside its agent."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python = folder, pythons.oldest()
        self.archive = folder / "broadgauge.zip"
        self.archive.write_bytes(bundle.build(bundle.RUN_POD_PARTS))
        self.orders = folder / "orders"
        self.orders.mkdir()
        pod(folder / "tree")
        facts_of(folder / "tree", status(entry(1, "default/rail-1", "10.1.0.5")))
        self.port, self.token = str(free_port()), new_token()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.written = b""
        """All that the leader wrote, as far as it was read."""
        self.lines: list[str] = []
        self.num_orders = 0

    def start(
        self, program: str, node: int, *options: str, output: Any
    ) -> "subprocess.Popen[bytes]":
        """As the container of a pod does it."""
        words = [self.python, "-I", "-S", str(self.archive), program, "--nodes", "2"]
        where = ["--leader", "127.0.0.1", "--port", self.port]
        process = subprocess.Popen(
            [
                *words,
                *where,
                "--meet-s",
                "600",
                "--scratch",
                str(self.folder / f"scratch{node}"),
                *options,
            ],
            env={
                "PATH": os.environ["PATH"],
                "JOB_COMPLETION_INDEX": str(node),
                "BROADGAUGE_TOKEN": self.token,
                "BROADGAUGE_POD_NAME": f"bench-{node}",
                "BROADGAUGE_NODE_NAME": f"machine-{node}",
                "BROADGAUGE_POD_IP": "127.0.0.1",
                **PATIENT,
            },
            stdout=output,
            cwd=self.folder,
        )
        self.processes.append(process)
        return process

    def lead(self, node: int = 0) -> "subprocess.Popen[bytes]":
        """In each pod; its log is a pipe."""
        stays = ["--orders", str(self.orders), "--keep-s", "600"]
        return self.start("pod-leader", node, *stays, output=subprocess.PIPE)

    def serve(self, node: int) -> "subprocess.Popen[bytes]":
        """Its log is a file."""
        with (self.folder / f"agent{node}.log").open("wb") as log:
            work, root = (str(self.folder / name) for name in (f"work{node}", "tree"))
            return self.start("pod-agent", node, "--folder", work, "--root", root, output=log)

    def put(self, order: LeaderOrder) -> None:
        """Whole or not at all, as a kubelet does it."""
        draft = self.folder / "draft"
        draft.write_bytes(order_bytes(order))
        draft.rename(self.orders / order_key(self.num_orders))
        self.num_orders += 1

    def log_of(self, leader: "subprocess.Popen[bytes]") -> Iterator[bytes]:
        assert leader.stdout is not None
        with leader.stdout as log:
            while data := os.read(log.fileno(), 1 << 16):
                self.written += data
                yield data

    def link(self, log: Iterator[bytes], after: int = -1) -> LogLink:
        """As the tool has it."""
        return LogLink(
            pump=LogPump(log),
            tell=self.put,
            hear_line=self.lines.append,
            begins=lambda: None,
            why_ended=lambda: None,
            last=after,
            generation=0,
        )

    def job(self, name: str, *commands: str, network: AskedNetwork | None = None) -> Job:
        """A trial for each, of which every rank of two runs what the shell makes of it."""
        made = allocations.job(name, [])
        return replace(
            made,
            orders=tuple(
                replace(each, order=self._scripted(each.order, network)) for each in made.orders
            ),
            trials=tuple(
                _trial(f"{name}.t{number}", command) for number, command in enumerate(commands)
            ),
        )

    def _scripted(self, order: LaunchOrder, network: AskedNetwork | None) -> LaunchOrder:
        (rank,), (node,) = order.ranks, order.nodes
        program = (self.python, "-I", "-S", str(RANK), str(self.archive))
        own = {"RANK": str(rank.rank), "LOCAL_RANK": "0", "GROUP_RANK": str(rank.node)}
        shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1"}
        shared |= {"MASTER_ADDR": MASTER_WORD, "MASTER_PORT": PORT_WORD}
        logged = {"ITS_FILE": f"rank{rank.rank}.place.log"}
        plan = replace(rank, program=program, environment=own, log_paths=logged)
        nodes = (replace(node, network=network),)
        return replace(order, nodes=nodes, ranks=(plan,), environment=shared, limits=LIMITS)

    def file_of_rank(self, rank: int) -> Path:
        """Its ITS_FILE, while it runs."""
        return self.folder / f"scratch{rank}" / "agent" / "logs" / f"rank{rank}.place.log"

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(HANG_S)
            finally:
                process.kill()


def _trial(trial_id: str, command: str) -> RunTrial:
    task = CommandTask(command=("sh", "-c", command), working_directory=None, metrics=(GIVEN,))
    return RunTrial(
        command=TrialCommand(
            trial_id=trial_id,
            task=task,
            layout=RankLayout(nodes=2, ranks_per_node=1, device="cpu", backend="gloo"),
            seed=0,
            process_group_timeouts_s=dict.fromkeys(Phase, 10.0),
        ),
        link=None,
    )
