"""Does `run --on kubernetes` measure, record and leave nothing? With the rights alone that `render
--rbac` prints, as a user without a name, over a real API server, scheduler and operators; pods are
processes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.runs import POD, VNIC, User

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
