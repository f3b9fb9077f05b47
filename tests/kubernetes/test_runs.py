"""Does `run --on kubernetes` measure, record and leave nothing? With the rights alone that `render
--rbac` prints, as a user without a name, over a real API server, scheduler and operators; pods are
processes."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.runs import POD, VNIC, User

from broadgauge.specs.errors import ExitCode

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]

ANY_UID = 1_000_680_000
"""As OpenShift gives a namespace: no name, no home."""


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane, operators: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    """Two nodes, which have a NIC beside the pod network."""
    config = KubeletConfig(
        **control_plane.for_kubelets(),
        folder=tmp_path_factory.mktemp("k"),
        nodes=NodeSpec.several(2, resources={"cpu": "8", "memory": "16Gi"}),
        fabrics=[Fabric(name="vnic", device="ens13")],
        default_image=replace(host_image(), user=ANY_UID),
    )
    with Kubelet.start(config) as started:
        yield started


@pytest.fixture
def user(kubelet: Kubelet, scratch: Scratch, control_plane: ControlPlane, tmp_path: Path) -> User:
    return User(scratch, control_plane, tmp_path)


def test_all_networks_are_measured_in_the_pods_of_one_job(user: User) -> None:
    """And a comparison keeps its pairs: both networks in each block."""
    user.write(networks=[POD, VNIC], launches=2)
    user.give_rights()
    output = user.run()
    assert user.statuses() == ["ok"] * 4, output
    assert sorted((each["network"], each["block"]) for each in user.records()) == [
        *(("pod", 0), ("pod", 1), ("vnic", 0), ("vnic", 1))
    ]
    environment = json.loads(next((user.run_folder / "environments").iterdir()).read_text())
    assert environment["platform"] == "kubernetes"
    assert environment["cluster"]["kubernetes"].startswith("v1.")
    assert environment["cluster"]["instance types"] is None  # no right to read nodes
    assert {*environment["nodes"][0]["hostnames"]} == {"worker-0", "worker-1"}
    assert environment["variables"]["GLOO_SOCKET_IFNAME"] in ("eth0", "net1")
    assert user.left() == []


def test_a_tool_that_is_killed_is_followed_by_one_that_collects(user: User) -> None:
    """Its pods live on meanwhile, and nothing is measured twice."""
    user.write(launches=3)
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: user.statuses() != [], "a first record")
        run.kill()
    assert user.num_running() == 2
    output = user.run("--resume", "last")
    assert user.statuses() == ["ok"] * 3, output
    records = [each["record_id"] for each in user.records()]
    assert len(set(records)) == len(records)
    assert user.left() == []


def test_ctrl_c_takes_everything_back(user: User) -> None:
    """Also while its pods can't be placed, which is said in the scheduler's words."""
    user.write(kubernetes={"node_selector": {"gpu": "h100"}})
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: "didn't match Pod's node affinity/selector" in run.said(), "why")
        assert user.left() != []
        run.interrupt()
        output = run.ended(exit_code=ExitCode.INTERRUPTED)
    assert "Traceback" not in output
    assert "2 pods waiting for a node (" in output, output
    assert user.left() == []


STEPS = """
import os, time
for step in range(1200):
    print("step", step, flush=True)
    if step == 2:
        open("/proc/self/comm", "w").write("{name}")
    time.sleep(0.05)
"""
"""Of ranks that tell by their process' name that they have printed some lines."""


def test_a_rank_that_is_killed_is_named_with_its_last_lines(user: User) -> None:
    user.write(workloads=[user.command(STEPS.replace("{name}", user.namespace))])
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: len(user.ranks()) == 2, "two ranks")
        os.kill(user.ranks()[1], signal.SIGKILL)
        output = run.ended(exit_code=ExitCode.TRIALS_FAILED)
    (record,) = user.records()
    assert record["error"]["rank"] == 1, record
    assert "signal 9 (SIGKILL); its last line: step " in output, output
    assert user.left() == []


def test_a_pod_that_is_killed_is_named_with_the_reason(user: User, kubelet: Kubelet) -> None:
    """The trial that ran in it fails; what is left is run by a successor of its job."""
    user.write(workloads=[user.command(STEPS.replace("{name}", user.namespace))], launches=2)
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: len(user.ranks()) == 2, "two ranks")
        name = str(user.pods()[1]["metadata"]["name"])
        kubelet.oom(user.namespace, name)
        run.wait_for(lambda: user.statuses() != [], "a failed record")
        run.wait_for(lambda: "-r1 in namespace" in run.said(), "a successor")
        run.interrupt()
        run.ended(exit_code=ExitCode.INTERRUPTED)
    record = user.records()[0]
    assert name in record["error"]["message"]
    assert "OOMKilled" in record["error"]["message"]
    assert user.left() == []
