"""Proves that what is rendered really measures: each pod's command, on loopback, with torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running.rendering.experiments import container_of, objects_of, rendered

from broadgauge.agent import bundle
from broadgauge.messages.free_port import free_port
from broadgauge.probes.without_agent import BLOCK_WORD

EXPERIMENT = """
name: small
cluster: {shapes: [2x1], device: cpu}
networks: [{name: pod, kubernetes: pod}]
workloads:
  - {kind: collectives, ops: [all_reduce], sizes: [1 KiB], min_iterations: 2, budget_s: 1 ms}
  - {kind: train, strategy: ddp, model: {layers: 1, hidden: 32, heads: 2, seq_len: 16}, steps: 4,
     warm_up_steps: 1, block_steps: 2}
launches: 1
trials_per_launch: 2
"""

pytestmark = [pytest.mark.slow, pytest.mark.measuring]
SWEEP = {"barrier", "all_reduce/float32/1024"}


@pytest.mark.parametrize(
    ("number", "kind", "labels"),
    [pytest.param(0, "collective", SWEEP, marks=pytest.mark.thorough), (1, "steps", None)],
)
def test_two_pods_measure_together(
    tmp_path: Path, number: int, kind: str, labels: set[str] | None
) -> None:
    found = rendered(tmp_path, text=EXPERIMENT)
    told = [each for each in objects_of(found, "ConfigMap") if "case.json" in each.get("data", {})]
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "case.json").write_text(told[number]["data"]["case.json"])
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "broadgauge.zip").write_bytes(bundle.build(bundle.POD_PARTS))
    pods = [start(container_of(found, number), tmp_path, node) for node in range(2)]
    logs = [pod.communicate()[0] for pod in pods]
    assert [pod.returncode for pod in pods] == [0, 0], "\n".join(logs)
    for node, log in enumerate(logs):
        lines = [line for line in log.splitlines() if line.startswith(BLOCK_WORD)]
        blocks = [json.loads(line.removeprefix(BLOCK_WORD)) for line in lines]
        of_kind = [block for block in blocks if block["kind"] == kind]
        assert {block["rank"] for block in blocks} == {node}
        assert {block["trial_id"] for block in of_kind} == {"t0", "t1"}
        assert all(block["seconds"] for block in of_kind)
        if labels is not None:
            assert {block["label"] for block in of_kind} == labels


PORT = str(free_port())


def start(container: dict[str, object], folder: Path, node: int) -> "subprocess.Popen[str]":
    """As a container runtime would, but for paths, the leader's name, and the port."""
    (python, *command), arguments = container["command"], list(container["args"])  # type: ignore[call-overload, misc]
    assert python == "python3"
    for flag, value in (("--leader", "127.0.0.1"), ("--port", PORT)):
        arguments[arguments.index(flag) + 1] = value
    words = [word.replace("/broadgauge/", f"{folder}/") for word in (*command, *arguments)]
    words = [word.replace("/scratch/work", f"/scratch/work{node}") for word in words]
    variables = {"JOB_COMPLETION_INDEX": str(node), "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
