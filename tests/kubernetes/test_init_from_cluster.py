"""Does `init --from-cluster` write what a real API server knows, with and without its facts?"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.objects import Objects
from tests.kubernetes.cluster.rights import give_rights
from tests.manifests.requests import experiment_of, request_of

from broadgauge.manifests.rbac import facts_file, rights_file
from broadgauge.platforms.kubernetes.cluster_experiment import MAP_FILE

pytestmark = [pytest.mark.kubernetes]
PRODUCT = "NVIDIA-H100-80GB-HBM3"


def node(name: str, number: int) -> dict[str, Any]:
    """A worker of a VPC, with a second vNIC."""
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
            "annotations": {
                "k8s.ovn.org/host-cidrs": json.dumps(
                    [f"10.240.1.{number}/24", f"10.249.65.{number}/26"]
                )
            },
        },
    }


def status(number: int) -> dict[str, Any]:
    amounts = {"cpu": "160", "memory": "1792Gi", "pods": "250", "nvidia.com/gpu": "8"}
    return {
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": f"10.240.1.{number}"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
    }


def definition(name: str, namespace: str, device: str) -> dict[str, Any]:
    config = {"cniVersion": "0.3.1", "name": name, "type": "host-device", "device": device}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"config": json.dumps(config)},
    }


@pytest.fixture
def cluster(control_plane: ControlPlane, crds: list[str], namespace: str) -> Iterator[ControlPlane]:
    """Two nodes and a definition, as objects: nothing runs."""
    del crds
    names = [f"{namespace}-worker-{number}" for number in (1, 2)]
    with control_plane.http() as http:
        objects = Objects(http)
        for number, name in enumerate(names, start=1):
            objects.apply(node(name, number))
            form = {"Content-Type": "application/merge-patch+json"}
            path = f"/api/v1/nodes/{name}/status"
            http.patch(path, json=status(number), headers=form).raise_for_status()
        objects.apply(definition("network-port-01", namespace, "ens13"))
        yield control_plane
        for name in names:
            http.delete(f"/api/v1/nodes/{name}").raise_for_status()


def broadgauge(kubeconfig: Path, folder: Path, *arguments: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "broadgauge", *arguments],
        cwd=folder,
        env=os.environ | {"KUBECONFIG": str(kubeconfig), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def user_with(control_plane: ControlPlane, namespace: str, *, has_facts: bool) -> Path:
    """Whoever `render --rbac` gives its rights to."""
    request = request_of(experiment_of(namespace=namespace))
    files = [rights_file(request), *([facts_file(request)] if has_facts else [])]
    name = f"system:serviceaccount:{namespace}:{request.name}-runner"
    with control_plane.http() as http:
        give_rights(http, (each for file in files for each in file.objects), name)
    return control_plane.add_user(name)


def test_with_the_cluster_role_all_is_found_and_the_file_is_taken(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = user_with(cluster, namespace, has_facts=True)
    init = ("init", "--from-cluster", "--namespace", namespace, "--out", "mine.yaml")
    code, _, said = broadgauge(kubeconfig, tmp_path, *init)
    assert code == 0, said
    text = (tmp_path / "mine.yaml").read_text()
    assert f"8 x {PRODUCT}" in text
    assert "gx3d-160x1792x8h100, us-east-3" in text
    assert "shapes: [1x8, 2x8]" in text
    assert "definitions: network-port-01" in text
    rows = (tmp_path / MAP_FILE).read_text().splitlines()
    for number in (1, 2):
        assert f"{namespace}-worker-{number}:ens13:net1:10.249.65.{number}/26" in rows
    assert "missing    kubernetes.image" in said
    assert "unknown, you may not" not in said
    for command in (
        ("run", "mine.yaml", "--dry-run"),
        ("render", "mine.yaml", "--out", "rendered"),
    ):
        code, output, errors = broadgauge(kubeconfig, tmp_path, *command)
        assert code == 0, output + errors
    code, _, said = broadgauge(kubeconfig, tmp_path, *init)
    assert code == 2
    assert "is there already" in said


def test_without_it_what_is_unknown_is_said_and_the_file_is_taken(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = user_with(cluster, namespace, has_facts=False)
    init = ("init", "--from-cluster", "--namespace", namespace)
    code, _, said = broadgauge(kubeconfig, tmp_path, *init)
    assert code == 0, said
    text = (tmp_path / "experiment.yaml").read_text()
    assert "nodes: unknown, you may not list nodes" in text
    assert "missing    nodes: unknown, you may not list nodes" in said
    code, output, errors = broadgauge(kubeconfig, tmp_path, "run", "experiment.yaml", "--dry-run")
    assert code == 0, output + errors


def test_printed_it_is_the_experiment_alone(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = cluster.kubeconfig()
    code, text, said = broadgauge(
        kubeconfig, tmp_path, "init", "--from-cluster", "--namespace", namespace, "-"
    )
    assert code == 0, said
    assert text.startswith("# For test, as its API describes it:")
    assert f"missing    {MAP_FILE}" in said
    assert list(tmp_path.iterdir()) == []


def test_flags_of_a_cluster_alone_are_refused(tmp_path: Path) -> None:
    code, _, said = broadgauge(tmp_path / "none", tmp_path, "init", "--namespace", "x")
    assert code == 2
    assert "--from-cluster" in said
