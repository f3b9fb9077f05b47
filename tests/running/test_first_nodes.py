"""Which of a cluster's nodes is a first experiment for, and what is said of them?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.inventory.made_up import answers, inventory
from tests.running.first_on_cluster import loaded, written

from broadgauge.running.first_experiment_on_cluster import FirstOnCluster
from broadgauge.specs.experiment import Experiment

TYPE, GKE = "node.kubernetes.io/instance-type", "cloud.google.com/gke-accelerator"
ARCH, OS, PRODUCT = "kubernetes.io/arch", "kubernetes.io/os", "nvidia.com/gpu.product"
GPUS = {"nvidia.com/gpu": "8"}
MASTER = "node-role.kubernetes.io/control-plane"


def node(
    labels: dict[str, str] | None = None,
    has: dict[str, str] | None = None,
    taints: Sequence[str] = (),
    **spec: Any,
) -> dict[str, Any]:
    """Ready; without a name, which its place gives."""
    told = [{"key": key, "effect": "NoSchedule"} for key in taints]
    return {
        "metadata": {"labels": labels or {}},
        "spec": {"taints": told, **spec},
        "status": {"allocatable": has or {}},
    }


def first(nodes: Sequence[dict[str, Any]], folder: Path) -> tuple[FirstOnCluster, Experiment]:
    data = answers("bare")
    for number, each in enumerate(nodes):
        each["metadata"]["name"] = f"n{number}"
    data["nodes"] = {"items": list(nodes)}
    found = written(inventory(data))
    return found, loaded(found, folder)


KINDS: list[tuple[list[dict[str, Any]], str, dict[str, str]]] = [
    ([node({TYPE: "p5"}, GPUS), node({TYPE: "p4d"}, GPUS)], "1 such node here", {TYPE: "p5"}),
    ([node({GKE: "h100"}, GPUS), node({GKE: "a100"}, GPUS)], "1 such node here", {GKE: "h100"}),
    ([node({ARCH: each}) for each in ("arm64", "amd64") * 2], "2 such nodes", {ARCH: "arm64"}),
    ([node({OS: "windows"})] * 3 + [node({OS: "linux"})], "1 such node here", {OS: "linux"}),
    ([node({PRODUCT: "H100"}, GPUS), *[node({}, GPUS)] * 2], "2 such nodes here", {}),
    ([node({TYPE: "m5"}), node({TYPE: "c5"}), node({}, GPUS, unschedulable=True)], "2 such", {}),
]


@pytest.mark.parametrize(("nodes", "such", "selector"), KINDS)
def test_nodes_of_two_kinds_are_not_called_alike(
    nodes: list[dict[str, Any]], such: str, selector: dict[str, str], tmp_path: Path
) -> None:
    """GPU feature discovery is not on every cluster."""
    copies = [{**each, "metadata": dict(each["metadata"])} for each in nodes]
    found, experiment = first(copies, tmp_path)
    assert such in found.text
    assert experiment.kubernetes.node_selector == selector


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([], "they may differ"),
        ([{PRODUCT: "H100"}], "pods may come to nodes with H100, too"),
        ([{TYPE: "k3s"}], "they may differ"),
    ],
)
def test_a_kind_of_gpu_that_no_label_tells_is_said(
    others: list[dict[str, str]], words: str, tmp_path: Path
) -> None:
    nodes = [node(labels, dict(GPUS)) for labels in ({}, {}, *others)]
    found, _ = first(nodes, tmp_path)
    [said] = [each for each in found.notes if "kind of GPU unknown" in each]
    assert words in said


def test_others_that_no_label_tells_are_said(tmp_path: Path) -> None:
    labels = {TYPE: "p5"}
    shared = node({**labels, "nvidia.com/gpu.replicas": "2"}, {"nvidia.com/gpu": "2"})
    found, _ = first([node(dict(labels), GPUS), node(dict(labels), GPUS), shared], tmp_path)
    [said] = [each for each in found.notes if each.startswith("kubernetes.node_selector")]
    assert "pods may come to nodes with p5, too" in said


def test_gpus_of_the_control_plane_alone_are_used(tmp_path: Path) -> None:
    found, experiment = first([node({}, GPUS, [MASTER]), node()], tmp_path)
    assert experiment.cluster.device == "cuda"
    assert any(f"{MASTER} keeps pods off" in each for each in found.notes)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node({}, GPUS, unschedulable=True)], "no node of Linux is ready and open to pods"),
        ([node({OS: "windows"})], "no node of Linux is ready and open to pods"),
        ([], "the cluster has no node"),
    ],
)
def test_why_there_are_no_nodes_to_use_is_said(
    nodes: list[dict[str, Any]], words: str, tmp_path: Path
) -> None:
    found, _ = first(nodes, tmp_path)
    assert f"cluster.shapes: {words}" in found.missing
    assert "No node is known" not in found.text
    assert "No GPU is known to be allocatable" not in found.text


def test_gpus_that_are_closed_are_not_called_missing(tmp_path: Path) -> None:
    found, _ = first([node({}, GPUS, unschedulable=True), node()], tmp_path)
    assert "# The nodes with GPUs are not of Linux, not ready, or closed to pods" in found.text


@pytest.mark.parametrize(
    "taint",
    [
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "cloud.google.com/impending-node-termination",
        "eks.amazonaws.com/compute-type",
        "virtual-kubelet.io/provider",
    ],
)
def test_nodes_that_are_about_to_go_or_are_none_are_not_used(taint: str, tmp_path: Path) -> None:
    nodes = [*(node({}, {}, [taint]) for _ in range(5)), node(), node()]
    found, experiment = first(nodes, tmp_path)
    assert "2 such nodes here: n5, n6" in found.text
    assert experiment.kubernetes.tolerations == ()


def test_nodes_that_are_kept_for_somebody_are_used_where_others_are_too_few_and_said(
    tmp_path: Path,
) -> None:
    nodes = [*(node({}, GPUS, ["team-a/dedicated", "nvidia.com/gpu"]) for _ in range(3)), node()]
    found, experiment = first(nodes, tmp_path)
    assert len(experiment.kubernetes.tolerations) == 2
    [said] = [each for each in found.notes if each.startswith("kubernetes.tolerations")]
    assert "team-a/dedicated keeps pods off" in said
    nodes += [node({}, GPUS, ["nvidia.com/gpu"]) for _ in range(2)]
    found, experiment = first(nodes, tmp_path)
    assert [each.key for each in experiment.kubernetes.tolerations] == ["nvidia.com/gpu"]
    assert not [each for each in found.notes if each.startswith("kubernetes.tolerations")]


SHARED = {PRODUCT: "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
MIG = {PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}


@pytest.mark.parametrize(
    ("labels", "offered", "words"),
    [
        (SHARED, "32", "8 x Tesla-T4-SHARED (shared, or parts of GPUs)"),
        (MIG, "56", "56 x NVIDIA-A100-SXM4-40GB-MIG-1g.5gb (shared, or parts of GPUs)"),
        ({"nvidia.com/gpu.sharing-strategy": "mps"}, "8", "8 x GPU (shared, or parts of GPUs)"),
    ],
)
def test_of_gpus_in_parts_a_node_has_one_rank(
    labels: dict[str, str], offered: str, words: str, tmp_path: Path
) -> None:
    nodes = [node(labels, {"nvidia.com/gpu": offered}) for _ in range(2)]
    found, experiment = first(nodes, tmp_path)
    assert experiment.cluster.shapes == ("1x1", "2x1")
    assert words in found.text.replace("\n#  ", "")
    assert any("one rank a node" in each for each in found.notes)


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared"])
def test_parts_of_gpus_by_another_name_are_not_called_no_gpu(resource: str, tmp_path: Path) -> None:
    found, experiment = first([node({}, {resource: "56"})], tmp_path)
    assert experiment.cluster.device == "cpu"
    assert f"  # GPUs offered as {resource} are not used here: cores compute." in found.text
    assert f"cluster.device: GPUs offered as {resource} are not used here" in found.notes
    assert "no GPU," not in found.text
    assert "No GPU is known" not in found.text
