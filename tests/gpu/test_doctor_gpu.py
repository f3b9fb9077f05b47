"""Does doctor see two GPUs and what joins them, and say what NCCL did on each path?"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

EXPERIMENT = """\
name: nccl
platform: local
cluster: {shapes: [1x2], device: cuda}
networks: [{name: nvlink, path: nvlink}, {name: shm, path: shm}, {name: sockets, path: sockets}]
workloads:
  - {kind: collectives, ops: [all_reduce], sizes: [256 MiB], min_iterations: 5, max_iterations: 5}
launches: 1
"""
NODES = """\
name: nodes
cluster: {shapes: [2x1], device: cuda}
networks: [{name: ten, rate_gbps: 10 Gbit/s}]
workloads:
  - {kind: collectives, ops: [all_reduce], sizes: [64 MiB], min_iterations: 3, max_iterations: 3}
launches: 1
"""
WAYS = {"nvlink": "P2P", "shm": "SHM", "sockets": "sockets"}


def doctor(folder: Path, *words: str) -> dict[str, Any]:
    print(run_command("doctor", *words, folder=folder).stdout)  # noqa: T201
    ran = run_command("doctor", *words, "--json", folder=folder)
    assert ran.returncode in (0, 8, 9), ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    worst = {finding["severity"] for finding in document["findings"]}
    assert ran.returncode == (9 if "error" in worst else 8 if "warning" in worst else 0)
    return document


def test_the_machine_has_two_gpus(empty_folder: Path) -> None:
    document = doctor(empty_folder, "--host")
    gpus = [gpu for gpu in document["host"]["gpus"] if gpu["is_usable"]]
    assert len(gpus) >= 2
    assert all("NVIDIA" in gpu["model"] for gpu in gpus)
    assert document["host"]["gpu_driver"] is not None
    assert document["host"]["nccl"]
    rules = {finding["rule"] for finding in document["findings"]}
    assert all(rule.startswith("host-") for rule in rules)


def test_each_path_is_told_from_the_runs_logs(empty_folder: Path) -> None:
    (empty_folder / "e.yaml").write_text(EXPERIMENT)
    ran = run_command("run", "e.yaml", folder=empty_folder, timeout_s=600)
    assert ran.returncode == 0, ran.stderr
    for record in records_of(only_run(empty_folder)):
        assert record["nccl"]["network"] == "Socket"
        assert [way["way"] for way in record["nccl"]["ways"]] == [WAYS[record["network"]]]
    document = doctor(empty_folder, "last")
    told = {case["label"].split()[-1]: case for case in document["run"]["cases"]}
    for network, way in WAYS.items():
        ways = {use["way"] for use in told[network]["paths"]["inside"]}
        assert ways == {way}, network
        assert told[network]["job"]["communicator"]["num_ranks"] == 2


@pytest.mark.namespaces
def test_two_emulated_nodes_are_two_nodes_over_sockets(empty_folder: Path) -> None:
    (empty_folder / "e.yaml").write_text(NODES)
    ran = run_command("run", "e.yaml", folder=empty_folder, timeout_s=600)
    assert ran.returncode == 0, ran.stderr
    document = doctor(empty_folder, "last")
    (case,) = document["run"]["cases"]
    assert case["job"]["num_nodes"] == 2
    assert {use["way"] for use in case["paths"]["between"]} == {"sockets"}
    assert "socket-streams-few" in {finding["rule"] for finding in document["findings"]}
