"""Proves `broadgauge patch` with a secondary network: the overlay that the article on GPUDirect
RDMA writes by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.running.rendering.json_patch import applied

from broadgauge.cli.main import main
from broadgauge.manifests.attachments import NETWORKS as ANNOTATION
from broadgauge.manifests.job_parts import is_gpu

BASELINE = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: sft-baseline}
spec:
  nprocPerNode: "2"
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &template
        spec:
          containers:
            - name: pytorch
              command: [bash, -c, torchrun /etc/config/sft.py]
              env: [{name: NCCL_DEBUG, value: INFO}]
              image: "quay.io/modh/training:py311-cuda121-torch241"
              resources:
                limits: &resources {cpu: "4", memory: 96Gi, nvidia.com/gpu: "2"}
                requests: *resources
    Worker: {replicas: 1, template: *template}
"""
"""The parts of the article's job that its overlay touches."""
NETWORK = "rdmashared-net"
RESOURCE = "rdma/rdma_shared_device_eth"
EXPERIMENT = """
name: nets
cluster: {shapes: [2x2], device: cuda}
networks:
  - name: roce
    nics_per_node: 2
    environment: {NCCL_IB_HCA: "=mlx5_1"}
    kubernetes: {attachment: existing, definitions: [net-a, other/net-b],
                 resources: rdma/a, transport: roce, gpudirect: false}
  - {name: ours, kubernetes: {attachment: macvlan, devices: ens1, ipam: dhcp}}
  - {name: rails, nics_per_node: nodes, kubernetes: {attachment: sriov, resources: a/b, ipam: dhcp}}
  - name: vlan
    kubernetes: {attachment: macvlan, devices: ens1, definitions: vlan-net, ipam: dhcp}
  - name: counted
    kubernetes: {attachment: existing, definitions: a, ipam: {kind: static, ranges: 10.0.0.0/24}}
  - name: mapped
    kubernetes: {attachment: host-device, devices: ens13, definitions: vnic-13,
                 ipam: {kind: address-map, map: nodes.yaml}}
  - name: gpus
    kubernetes: {attachment: existing, definitions: a, resources: nvidia.com/gpu, transport: roce}
  - {name: efa, kubernetes: {attachment: device-plugin, profile: efa}}
  - name: tcpxo
    nics_per_node: 8
    kubernetes: {attachment: existing, profile: gpudirect-tcpxo,
                 definitions: [g1, g2, g3, g4, g5, g6, g7, g8]}
  - name: twin
    kubernetes: {attachment: existing, definitions: net-a, resources: rdma/a,
                 transport: [roce, tcp]}
workloads: [{kind: collectives, ops: [all_reduce], sizes: [1 MiB]}]
"""


def patched(folder: Path, *arguments: str, manifest: str = BASELINE) -> list[dict[str, Any]]:
    """Templates of the pods, with the overlay applied."""
    (folder / "job.yaml").write_text(manifest)
    (folder / "nets.yaml").write_text(EXPERIMENT)
    assert main(["patch", str(folder / "job.yaml"), "--out", str(folder / "out"), *arguments]) == 0
    (written,) = (folder / "out" / "overlays").glob("*/kustomization.yaml")
    yaml = YAML(typ="safe", pure=True)
    (patch,) = yaml.load(written)["patches"]
    job = applied(yaml.load(manifest), yaml.load(patch["patch"]))
    replicas = job["spec"]["pytorchReplicaSpecs"]
    return [replicas[role]["template"] for role in ("Master", "Worker")]


def variables(template: dict[str, Any]) -> dict[str, str]:
    (container,) = template["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


def test_the_articles_overlay(tmp_path: Path) -> None:
    """The annotation, the interface by which NCCL calls, and the resource of the pods' RDMA; the
    base stays as it is."""
    for template in patched(tmp_path, "--network", NETWORK, "--resource", RESOURCE):
        entry = {"name": NETWORK, "interface": "net1"}
        assert json.loads(template["metadata"]["annotations"][ANNOTATION]) == [entry]
        (container,) = template["spec"]["containers"]
        for kind in ("limits", "requests"):
            assert container["resources"][kind] == {
                "cpu": "4", "memory": "96Gi", "nvidia.com/gpu": "2", RESOURCE: "1"}  # fmt: skip
        told = variables(template)
        assert (told["NCCL_SOCKET_IFNAME"], told["NCCL_NET"]) == ("=net1", "IB")
    assert (tmp_path / "out" / "base" / "job.yaml").read_text() == BASELINE


def test_without_a_resource_nccl_is_forced_to_tcp_on_the_same_interface(tmp_path: Path) -> None:
    (template, _) = patched(tmp_path, "--network", NETWORK)
    told = variables(template)
    assert (told["NCCL_SOCKET_IFNAME"], told["NCCL_NET"]) == ("=net1", "Socket")
    assert RESOURCE not in template["spec"]["containers"][0]["resources"]["limits"]


def test_a_network_of_an_experiment_with_all_that_it_says(tmp_path: Path) -> None:
    nets = str(tmp_path / "nets.yaml")
    (template, _) = patched(tmp_path, "--network", "roce", "--experiment", nets)
    assert json.loads(template["metadata"]["annotations"][ANNOTATION]) == [
        {"name": "net-a", "interface": "net1"},
        {"name": "net-b", "namespace": "other", "interface": "net2"},
    ]
    told = variables(template)
    assert told["NCCL_SOCKET_IFNAME"] == "=net1,net2"
    assert (told["NCCL_NET_GDR_LEVEL"], told["NCCL_IB_HCA"]) == ("LOC", "=mlx5_1")


def test_patched_again_nothing_changes(tmp_path: Path) -> None:
    manifest = BASELINE
    for _ in range(2):
        (template, _) = patched(tmp_path, "--network", NETWORK, "--resource", RESOURCE)
        metadata = f"metadata: {json.dumps(template['metadata'])}"
        manifest = BASELINE.replace("&template\n", f"&template\n        {metadata}\n", 1)
    (template, _) = patched(tmp_path, "--network", NETWORK, "--resource", RESOURCE,
                            manifest=manifest)  # fmt: skip
    assert len(json.loads(template["metadata"]["annotations"][ANNOTATION])) == 1


def test_definitions_may_be_named_after_their_network(tmp_path: Path) -> None:
    """What the experiment names is in the cluster, whatever it is called."""
    nets = str(tmp_path / "nets.yaml")
    (template, _) = patched(tmp_path, "--network", "vlan", "--experiment", nets)
    (entry,) = json.loads(template["metadata"]["annotations"][ANNOTATION])
    assert entry == {"name": "vlan-net", "interface": "net1"}


def test_a_fabrics_huge_pages_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nets = str(tmp_path / "nets.yaml")
    (template, _) = patched(tmp_path, "--network", "efa", "--experiment", nets)
    (container,) = template["spec"]["containers"]
    for kind in ("limits", "requests"):
        assert container["resources"][kind]["hugepages-2Mi"] == "5120Mi"
        assert container["resources"][kind]["vpc.amazonaws.com/efa"] == "1"
    told = capsys.readouterr().err.splitlines()
    assert (
        "needs      1 free vpc.amazonaws.com/efa on each node (a device plugin offers it)" in told
    )
    assert "needs      5120Mi of free hugepages-2Mi on each node" in told
    (of_fabric,) = (line for line in told if line.startswith("needs      efa: nodes whose EFA"))
    assert "aws-ofi-nccl in the image" in of_fabric
    assert not any("NCCL_IB_HCA" in line for line in told), "libfabric chooses EFA's"


def test_the_same_amount_in_another_unit_stays(tmp_path: Path) -> None:
    nets = str(tmp_path / "nets.yaml")
    manifest = BASELINE.replace("cpu: ", "hugepages-2Mi: 5Gi, cpu: ")
    (template, _) = patched(tmp_path, "--network", "efa", "--experiment", nets, manifest=manifest)
    asked = template["spec"]["containers"][0]["resources"]
    assert {asked[kind]["hugepages-2Mi"] for kind in ("limits", "requests")} == {"5Gi"}


def told_of(capsys: pytest.CaptureFixture[str], word: str) -> list[str]:
    lines = capsys.readouterr().err.splitlines()
    return [line.removeprefix(word).strip() for line in lines if line.startswith(f"{word} ")]


def test_what_the_cluster_must_have_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patched(tmp_path, "--network", NETWORK, "--resource", RESOURCE)
    assert told_of(capsys, "needs") == [
        f"NetworkAttachmentDefinition {NETWORK} in the job's namespace",
        f"1 free {RESOURCE} on each node (a device plugin offers it)",
    ]


def test_a_definition_elsewhere_is_needed_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patched(tmp_path, "--network", "other/net-b")
    assert told_of(capsys, "needs") == ["NetworkAttachmentDefinition net-b in other"]


def test_rdma_is_told_of_locked_memory_and_of_adapters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patched(tmp_path, "--network", NETWORK, "--resource", RESOURCE)
    memory, adapters = told_of(capsys, "note")
    assert "RDMA pins more memory" in memory
    assert "LimitMEMLOCK" in memory
    assert "every adapter that the pods see, unless `NCCL_IB_HCA` says which" in adapters
    assert "`--experiment`" in adapters


@pytest.mark.parametrize(
    ("arguments", "manifest", "left"),
    [
        (["--network", NETWORK], BASELINE, []),
        (["--network", "pod"], BASELINE, []),
        (["--network", "roce", "--experiment", "nets.yaml"], BASELINE, ["RDMA pins"]),
        (["--network", NETWORK, "--resource", RESOURCE],
         BASELINE.replace("env: [", "env: [{name: NCCL_IB_HCA, value: mlx5_1}, "), ["RDMA pins"]),
        (["--network", "twin-transport-roce", "--experiment", "raised.yaml"], BASELINE,
         ["NCCL takes"]),
    ],
)  # fmt: skip
def test_nothing_is_advised_that_is_done(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    manifest: str,
    left: list[str],
) -> None:
    raised = tmp_path / "raised.yaml"
    raised.write_text(EXPERIMENT + "kubernetes: {memlock_is_raised: true}\n")
    words = [str(tmp_path / each) if each.endswith(".yaml") else each for each in arguments]
    patched(tmp_path, *words, manifest=manifest)
    notes = told_of(capsys, "note")
    assert [note[: len(word)] for note, word in zip(notes, left, strict=True)] == left


@pytest.mark.parametrize(
    ("manifest", "arguments", "words"),
    [
        (BASELINE.replace("&template\n", "&template\n        metadata: {annotations: "
                          f"{{{ANNOTATION}: other-net}}}}\n"), ["--network", NETWORK],
         ["PyTorchJob sft-baseline", "already", "take it out"]),
        ("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\n"
         "spec: {trainer: {numNodes: 2}}\n", ["--network", NETWORK],
         ["TrainJob t: its pods are its runtime's", "render --job trainjob"]),
        (BASELINE, ["--network", "ours", "--experiment", "nets.yaml"],
         ["networks.ours.kubernetes.definitions", "have no names"]),
        (BASELINE, ["--network", "rails", "--experiment", "nets.yaml"], ["`nodes`"]),
        (BASELINE, ["--network", "roce", "--experiment", "nets.yaml", "--resource", "a/b"],
         ["--resource a/b", "says its own"]),
        (BASELINE, ["--network", NETWORK, "--resource", "rdma"], ["`rdma` is none"]),
        (BASELINE, ["--network", "counted", "--experiment", "nets.yaml"],
         ["networks.counted.kubernetes.ipam", "an overlay gives all pods one address",
          "`broadgauge render`"]),
        (BASELINE, ["--network", "mapped", "--experiment", "nets.yaml"],
         ["networks.mapped.kubernetes.ipam", "does not add the init container",
          "`broadgauge render`"]),
        (BASELINE, ["--network", "tcpxo", "--experiment", "nets.yaml"],
         ["networks.tcpxo.kubernetes.profile: gpudirect-tcpxo needs a container beside the ranks' "
          "and folders of the node in theirs", "`broadgauge render`"]),
        (BASELINE.replace('gpu: "2"', f'gpu: "2", {RESOURCE}: "2"'),
         ["--network", NETWORK, "--resource", RESOURCE],
         [f"container pytorch: it asks for 2 {RESOURCE} already, and the network for 1"]),
        (BASELINE.replace('cpu: "4", memory: 96Gi, ', ""),
         ["--network", "efa", "--experiment", "nets.yaml"],
         ["neither CPUs nor memory", "hugepages-2Mi"]),
        (BASELINE, ["--network", NETWORK, "--resource", "nvidia.com/gpu"],
         ["--resource: `nvidia.com/gpu`", "GPUs are no NIC"]),
        (BASELINE, ["--network", "gpus", "--experiment", "nets.yaml"],
         ["networks.gpus.kubernetes.resources: `nvidia.com/gpu`", "GPUs are no NIC"]),
        (BASELINE, ["--network", "twin", "--experiment", "nets.yaml"],
         ["no network `twin`", "`twin-transport-roce`, `twin-transport-tcp`"]),
    ],
)  # fmt: skip
def test_what_an_overlay_cant_do_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    manifest: str,
    arguments: list[str],
    words: list[str],
) -> None:
    job, nets, out = (tmp_path / name for name in ("job.yaml", "nets.yaml", "out"))
    job.write_text(manifest)
    nets.write_text(EXPERIMENT)
    words_of_it = [str(nets) if each == "nets.yaml" else each for each in arguments]
    assert main(["patch", str(job), "--out", str(out), *words_of_it]) == 2
    told = capsys.readouterr().err
    assert all(word in told for word in words), told
    assert not out.exists()


@pytest.mark.parametrize(
    ("resource", "is_one"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("amd.com/gpu", True),
        ("habana.ai/gaudi", True),
        ("gpu.intel.com/xe", True),
        ("aliyun.com/gpu-mem", True),
        ("nvidia.com/roce", False),
        ("nvidia.com/hostdev", False),
        ("amd.com/vnic", False),
        ("rdma/rdma_shared_device_eth", False),
        ("openshift.io/gpu-rail0", False),
    ],
)
def test_a_vendor_of_gpus_has_nics_too(resource: str, is_one: bool) -> None:
    assert is_gpu(resource) is is_one
