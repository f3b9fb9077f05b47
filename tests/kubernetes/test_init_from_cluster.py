"""Is what `init --from-cluster` writes of a real API server planned, taken and run there, with and
without the right to read nodes? As a service account."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.kubelet.config import Fabric, NodeSpec, host_image
from tests.kubernetes.runs import User

from broadgauge.manifests.rights import GROUP
from broadgauge.running.first_networks import MAP_FILE

pytestmark = pytest.mark.kubernetes

PRODUCT = "NVIDIA-H100-80GB-HBM3"
VPC = {f"worker-{number}": f"10.249.65.{number + 8}/26" for number in range(2)}
"""What the fabric gave to each node's second NIC."""
NODES = {
    "nodes": NodeSpec.several(2, resources={"cpu": "8", "memory": "16Gi"}),
    "fabrics": [Fabric(name="vpc", device="ens13", addresses=VPC, only_given_addresses=True)],
    "default_image": replace(host_image(), user=1000),
}
READER = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    {
        "apiGroups": ["k8s.cni.cncf.io"],
        "resources": ["network-attachment-definitions"],
        "verbs": ["list"],
    },
]
INIT = ("init", "--from-cluster", "experiment.yaml")


def definition(name: str, device: str) -> Manifest:
    config = {"cniVersion": "0.3.1", "name": name, "type": "host-device", "device": device}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name},
        "spec": {"config": json.dumps(config)},
    }


def told_addresses(*addresses: str) -> dict[str, str]:
    """As OVN-Kubernetes says it of a node."""
    return {"k8s.ovn.org/host-cidrs": json.dumps(addresses)}


def planted(name: str, number: int) -> Manifest:
    """A worker of a VPC, with GPUs and a second vNIC."""
    amounts = {"cpu": "160", "memory": "1792Gi", "pods": "250", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "node.kubernetes.io/instance-type": "gx3d-160x1792x8h100",
                "topology.kubernetes.io/zone": "us-east-3",
                "nvidia.com/gpu.product": PRODUCT,
            },
            "annotations": told_addresses(f"10.240.1.{number}/24", f"10.249.65.{number}/26"),
        },
        "spec": {"taints": [{"key": "gpus", "value": "only", "effect": "NoSchedule"}]},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": f"10.240.1.{number}"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.fixture
def gpu_nodes(scratch: Scratch, network_kinds: None) -> Iterator[list[str]]:
    """Two, as objects: nothing runs on them. And a definition over their second NIC."""
    api, names = scratch.api, [f"{scratch.namespace}-gpus-{number}" for number in (1, 2)]
    nodes = [planted(name, number) for number, name in enumerate(names, start=1)]
    for node in nodes:
        api.create(node)
        merge = "application/merge-patch+json"
        path, about = api.path(node), {"status": node["status"]}
        api.request("PATCH", f"{path}/status", about, content_type=merge)
        api.request("PATCH", path, {"spec": node["spec"]}, content_type=merge)  # not-ready is off
    scratch.create(definition("network-port-01", "ens13"))
    yield names
    for node in nodes:
        api.delete(node)


@pytest.fixture
def comer(scratch: Scratch, control_plane: ControlPlane, tmp_path: Path) -> User:
    """Somebody who has never run anything here, and no right yet."""
    return User(scratch, control_plane, tmp_path)


def let_read(user: User) -> None:
    """Nodes and definitions, of the whole cluster."""
    about = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": user.namespace}}
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": user.namespace}
    user.scratch.api.create(about | {"kind": "ClusterRole", "rules": READER})
    bound = {"roleRef": role, "subjects": [user.subject]}
    user.scratch.api.create(about | {"kind": "ClusterRoleBinding", **bound})


def test_what_is_written_is_planned_and_taken(
    comer: User, gpu_nodes: list[str], operators: None
) -> None:
    let_read(comer)
    comer.output(*INIT)
    text = (comer.folder / "experiment.yaml").read_text()
    assert f"8 x {PRODUCT}" in text
    assert "gx3d-160x1792x8h100, us-east-3" in text
    assert "shapes: [1x8, 2x8]" in text
    assert "    - gpus\n" in text
    rows = (comer.folder / MAP_FILE).read_text().splitlines()
    for number, name in enumerate(gpu_nodes, start=1):
        assert f"{name}:ens13:net1:10.249.65.{number}/26" in rows
    comer.output("run", "experiment.yaml", "--dry-run")
    rendered = comer.output("render", "experiment.yaml")
    manifests = list(filter(None, yaml.safe_load_all(rendered)))
    assert {"Job", "ConfigMap"} <= {each["kind"] for each in manifests}
    comer.scratch.dry_run(*manifests)


def test_who_may_not_read_nodes_gets_what_is_known(comer: User, gpu_nodes: list[str]) -> None:
    comer.output(*INIT)
    text = (comer.folder / "experiment.yaml").read_text()
    for words in ("nodes: unknown, you may not list nodes", "networks: unknown, you may not list"):
        assert f"# - {words}" in text


@pytest.mark.root
@pytest.mark.namespaces
def test_what_is_written_runs_over_every_network_of_the_cluster(scripted: User) -> None:
    """Also over one that drops what has not the address that it gave to a node."""
    for name, address in VPC.items():
        about = {"name": name, "annotations": told_addresses(address)}
        scripted.scratch.api.apply({"apiVersion": "v1", "kind": "Node", "metadata": about})
    scripted.scratch.create(definition("vnic", "ens13"))
    let_read(scripted)
    scripted.output(*INIT)
    scripted.give_rights()
    settings = ("kubernetes.image=host", "kubernetes.job=job", "launches=1")
    words = [word for each in settings for word in ("--set", each)]
    output = scripted.run("experiment.yaml", *words)
    records = scripted.records()
    assert {record["status"] for record in records} == {"ok"}, output
    assert {record["network"] for record in records} == {"one node", "pod", "vnic"}
    assert scripted.left() == []
