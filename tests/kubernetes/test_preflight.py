"""Is what a cluster's pods lack named before anything is measured in them? On a real API server."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, NodeSpec, host_image
from tests.kubernetes.runs import User, nic

from broadgauge.specs.errors import ExitCode

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]

NODES = {
    "nodes": NodeSpec.several(2, resources={"cpu": "8", "memory": "16Gi"}),
    "default_image": replace(host_image(), user=1_000_680_000),
    "fabrics": [Fabric(name="vnic", device="ens13")],
}
POD = {"name": "pod", "kubernetes": "pod"}
VNIC = {"name": "vnic", "kubernetes": nic("ens13", "10.30.0.0/24")}


@pytest.fixture
def scripted(scripted: User) -> User:
    """With a program of theirs as workload."""
    scripted.write(networks=[POD, VNIC], workloads=[scripted.command("print('known 1')")])
    scripted.give_rights()
    return scripted


@contextmanager
def without_cable(kubelet: Kubelet, node: str) -> Iterator[None]:
    kubelet.fabric_port("vnic", node, up=False)
    try:
        yield
    finally:
        kubelet.fabric_port("vnic", node, up=True)


def preflight(user: User, *words: str, exit_code: int = 0) -> str:
    return user.output("preflight", "experiment.yaml", *words, exit_code=exit_code)


def test_a_healthy_cluster_is_found_to_be_one_and_nothing_is_left(scripted: User) -> None:
    (line,) = preflight(scripted, "--failing-nodes", "failing.txt").splitlines()
    assert line.startswith("kubernetes: 2 machines, 4 calls over pod, vnic, in ")
    assert line.endswith(": nothing fails")
    assert (scripted.folder / "failing.txt").read_text() == ""
    assert scripted.left() == []


def test_what_fails_is_named_with_its_nodes(scripted: User, kubelet: Kubelet) -> None:
    first, second = (spec.name for spec in kubelet.config.nodes)
    with without_cable(kubelet, second):
        words = ("--failing-nodes", "failing.txt")
        output = preflight(scripted, *words, exit_code=ExitCode.PREFLIGHT_FAILS)
    assert f"fails: network vnic, {second}: net1 is down" in output
    pair = re.search(
        r"fails: network vnic, NIC 0: (\S+) at 10\.30\.0\.\d+ and (\S+) at 10\.30\.0\.\d+ don't "
        "reach each other: ",
        output,
    )
    assert pair is not None, output
    assert set(pair.groups()) == {first, second}  # the scheduler says which of them leads
    assert (scripted.folder / "failing.txt").read_text() == f"{second}\n"
    assert scripted.left() == []


def test_launches_that_would_hang_are_not_started_and_others_are(
    scripted: User, kubelet: Kubelet
) -> None:
    second = kubelet.config.nodes[1].name
    with without_cable(kubelet, second):
        output = scripted.run(exit_code=ExitCode.TRIALS_FAILED)
    by_network = {record["network"]: record for record in scripted.records()}
    assert by_network["pod"]["status"] == "ok"
    message = by_network["vnic"]["error"]["message"]
    found = f"network vnic, {second}: net1 is down"
    assert f"no rank was started, by what the preflight found: {found}" in message
    assert f"preflight: it would be well without {second}" in output
    logs = scripted.run_folder / "logs"
    assert (logs / "failing-nodes.txt").read_text() == f"{second}\n"
    kept = json.loads((logs / "preflight.json").read_text())
    assert [kept["names"][agent] for agent in kept["failing"]] == [second]


@pytest.mark.measured
def test_it_takes_half_a_minute_at_most(scripted: User, kubelet: Kubelet) -> None:
    """Where all is well it takes seconds."""
    second = kubelet.config.nodes[1].name
    scripted.run()
    assert lasted_s(scripted) < 5.0
    with without_cable(kubelet, second):
        scripted.run(exit_code=ExitCode.TRIALS_FAILED)
    assert lasted_s(scripted) < 30.0


def lasted_s(user: User) -> float:
    """The preflight of the newest run."""
    kept = json.loads((user.run_folder / "logs/preflight.json").read_text())
    return float(kept["lasted_s"])
