"""`platform: skypilot` end to end: runs on two machines with sshd that a stand-in brings up.

The machines are there all the time; `sky launch` gives them the cluster's name in ssh's
configuration, and what it says is invented (stand_in.py).
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, wait_until
from tests.platforms.hosts.machines import Machines, Started, Tool, machines_in
from tests.platforms.skypilot import stand_in

pytestmark = [pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd, pytest.mark.slow]

EXPERIMENT = f"""\
name: sky-run
platform: skypilot
skypilot: {{python: {sys.executable}, secrets: [MY_KEY], setup: 'echo my key is $MY_KEY', cpus: 2+}}
cost: {{usd_per_node_hour: 36}}
cluster: {{shapes: [2x1], device: cpu}}
networks:
  - {{name: ethernet, rate_gbps: 10 Gbit/s, skypilot: standard}}
  - {{name: best, skypilot: best}}
workloads:
  - {{kind: collectives, name: one, ops: [all_reduce], sizes: [1 MiB], environment: LINGER}}
  - {{kind: collectives, name: two, ops: [all_reduce], sizes: [2 MiB], environment: LINGER}}
launches: 2
"""
LINGER = "{LINGER_IN: {from_environment: true}, LINGER_S: {from_environment: true}}"


@dataclass(slots=True)
class Cloud:
    """The tool beside the machines, with a `sky` on its PATH."""

    tool: Tool
    folder: Path

    def start(self, *words: str, lingers_s: float = 0.0) -> Started:
        machines = self.tool.machines.folder
        path = f"{self.folder}/bin:{machines}/bin:{os.environ['PATH']}"
        variables = {
            "PATH": path,
            stand_in.FOLDER: str(self.folder),
            stand_in.SPEED: "20",
            stand_in.SSH_CONFIG: str(machines / "config"),
            "MY_KEY": "very secret",
            "LINGER_IN": "measure" if lingers_s else "none",
            "LINGER_S": str(lingers_s),
        }
        return self.tool.start(*words, **variables)

    def run(self, *words: str, code: int = 0) -> str:
        return self.start(*words).end(code, 240)

    @property
    def asked(self) -> list[str]:
        return [words[0] for words in stand_in.asked(self.folder)]

    def has_lingering_ranks(self) -> bool:
        return self.tool._count_logs("lingers") >= 2

    @property
    def records(self) -> list[dict[str, Any]]:
        return records_of(only_run(self.tool.folder))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines_in(tmp_path_factory.mktemp("rig"), rate_gbps=0.2) as found:
        yield found


@pytest.fixture
def cloud(machines: Machines, tmp_path: Path) -> Iterator[Cloud]:
    """Nothing is paid for or left on a machine when the test has ended."""
    folder = tmp_path / "cloud"
    stand_in.install(folder)
    work = tmp_path / "work"
    work.mkdir()
    tool = Tool(machines, work)
    tool.write(EXPERIMENT.replace(": LINGER", f": {LINGER}"))
    yield Cloud(tool, folder)
    left, paid_for = machines.left_over(), stand_in.clusters(folder)
    machines.clear()
    assert (left, paid_for) == ([], {})


def test_a_run_takes_one_cluster_after_the_other_and_leaves_none(cloud: Cloud) -> None:
    said = cloud.run("run", "e.yaml", "--max-cost", "500")
    assert [each["status"] for each in cloud.records] == ["ok"] * 8
    assert cloud.asked == ["launch", "launch", "down", "status"] * 2
    names = [words[-1] for words in stand_in.asked(cloud.folder) if words[0] == "down"]
    assert [name.rpartition("-")[2] for name in names] == ["standard", "best"]
    folder = only_run(cloud.tool.folder)
    environments = [json.loads(path.read_text()) for path in folder.glob("environments/*.json")]
    assert {each["platform"] for each in environments} == {"skypilot"}
    assert {each["cluster"]["network_tier"] for each in environments} == {"standard", "best"}
    assert said.count("the run so far $") >= 2
    assert "of $500.00" in said
    texts = [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
    assert any("my key is ***" in text for text in texts), "setup's lines are kept"
    assert not any("very secret" in text for text in (said, *texts))


@pytest.mark.thorough
def test_ctrl_c_brings_the_cluster_down_and_resume_takes_another(cloud: Cloud) -> None:
    started = cloud.start("run", "e.yaml", lingers_s=60)
    wait_until(cloud.has_lingering_ranks, 120)
    started.interrupt()
    started.end(130)
    assert stand_in.clusters(cloud.folder) == {}
    cloud.run("run", "--resume", "last")
    assert [each["status"] for each in cloud.records] == ["ok"] * 8
    assert cloud.asked.count("down") == 3


@pytest.mark.thorough
def test_a_killed_tool_is_not_missed_and_resume_finds_its_cluster(cloud: Cloud) -> None:
    started = cloud.start("run", "e.yaml", lingers_s=2)
    wait_until(cloud.has_lingering_ranks, 120)
    started.kill()
    (name,) = stand_in.clusters(cloud.folder)
    cloud.run("run", "--resume", "last")
    assert [each["status"] for each in cloud.records] == ["ok"] * 8
    launched = [
        words[words.index("--cluster") + 1]
        for words in stand_in.asked(cloud.folder)
        if words[0] == "launch"
    ]
    assert launched.count(name) == 2, "the first cluster is used again"
    assert len(set(launched)) == 2


def test_without_sky_it_says_what_to_install(cloud: Cloud) -> None:
    (cloud.folder / "bin" / "sky").unlink()
    said = cloud.run("run", "e.yaml", code=4)
    assert "there is no `sky` here" in said
