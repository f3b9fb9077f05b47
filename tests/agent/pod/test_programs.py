"""Proves the pods' programs of the zip file, under the oldest Python and the newest, alone."""

import json
import subprocess
from pathlib import Path

import pytest
from tests import pythons

from broadgauge.agent import bundle

LIMIT_S = 60
PREFLIGHT = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from broadgauge.agent.pod import preflight
from broadgauge.agent.pod.facts import read_pod_facts
from broadgauge.agent.pod.preflight_plan import plan_probes
from broadgauge.agent.pod.resolve import ResolvedNetwork

facts = read_pod_facts()
pods = []
for number in (0, 1):
    network = ResolvedNetwork(name="n", interfaces=("lo",), addresses=(f"127.2.0.{number + 1}",))
    pods.append(preflight.open_listeners(number, [network], facts))
there = [address for pod in pods for address in pod.addresses]

async def both():
    async with preflight.answering(pods[0], "key"), preflight.answering(pods[1], "key"):
        good = await preflight.run_probes(plan_probes(there), "key")
        preflight.PROBE_LIMIT_S = 0.0
        late = await preflight.run_probes(plan_probes(there), "key")
        return good + late

for each in asyncio.run(both()):
    print(each.ok, each.error)
"""


@pytest.fixture(params=["oldest", "newest"])
def python(request: pytest.FixtureRequest) -> str:
    return pythons.oldest() if request.param == "oldest" else pythons.newest()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "broadgauge.zip"
    path.write_bytes(bundle.build())
    return path


def run(*command: object, told: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        list(map(str, command)),
        input=told,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )


def test_what_a_pod_has(python: str, archive: Path) -> None:
    ended = run(python, "-I", "-S", archive, "networks")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "network status: no annotation is mounted" in ended.stdout.splitlines()


def test_networks_are_resolved_and_refused(python: str, archive: Path) -> None:
    asked = [{"name": "fabric", "attachments": ["default/net-a"], "transport": "roce"}]
    ended = run(python, "-I", "-S", archive, "networks", told=json.dumps(asked))
    assert ended.returncode == 1
    first, second = ended.stdout.splitlines()
    assert first == "network fabric: not found"
    assert second.startswith("  refused: the pod has no network status annotation")


@pytest.mark.parametrize("told", ["nonsense", '[{"name": 3}]', "[[]]"])
def test_what_is_no_network_is_said(archive: Path, told: str) -> None:
    ended = run(pythons.newest(), "-I", "-S", archive, "networks", told=told)
    assert ended.returncode == 2
    assert ended.stderr.startswith("standard input holds no networks: ")
    assert len(ended.stderr.splitlines()) == 1


def test_no_map(python: str, archive: Path) -> None:
    ended = run(python, "-I", "-S", archive, "addresses")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        "addresses: the node's name is not known",
        "hint: set BROADGAUGE_NODE_NAME from the field spec.nodeName",
    ]


def test_preflight(python: str, archive: Path) -> None:
    ended = run(python, "-I", "-S", "-c", PREFLIGHT, archive)
    assert ended.stderr == ""
    good, late = ended.stdout.splitlines()
    assert good == "True None"
    assert late == "False no answer in 0 s: a filter on the way, or no route back"


def test_a_leader_that_can_keep_nothing_ends_its_pod(python: str, archive: Path) -> None:
    """Before ranks start: its job fails, and the tool shows this line."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "BROADGAUGE_FOLDER": str(archive.parent),
        "BROADGAUGE_LEADER": "localhost",
        "BROADGAUGE_NODE": "0",
        "BROADGAUGE_POD_IP": "127.0.0.1",
        "BROADGAUGE_RESULTS": "/proc/kept",
        "BROADGAUGE_TOKEN": "token",
    }
    ended = subprocess.run(
        [python, "-I", "-S", archive, "pod"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 2
    said = [line for line in (ended.stdout + ended.stderr).splitlines() if "keep" in line]
    assert said == [
        "broadgauge: its leader can't keep anything in /proc/kept: No such file or directory"
    ]
