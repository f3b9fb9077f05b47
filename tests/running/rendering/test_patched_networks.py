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
  - {name: ours, kubernetes: {attachment: macvlan, devices: ens1}}
  - {name: rails, nics_per_node: nodes, kubernetes: {attachment: sriov, resources: a/b}}
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
