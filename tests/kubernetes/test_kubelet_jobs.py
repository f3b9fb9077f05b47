"""Proves tests/kubernetes/kubelet by whole jobs: ranks of the real operators meet and add up, and a
master and its workers reach each other where, and only where, their addresses allow it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.pods import Pods
from tests.running.rendering.experiments import rendered

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]

NUM_NODES = 4
NODES = [f"job-{number}" for number in range(NUM_NODES)]
VPC = {name: f"10.249.{65 if name == NODES[0] else 66}.{4 + n}" for n, name in enumerate(NODES)}
"""The first node's NIC is in another subnet than the others', as in the published map."""
MAP = "".join(f"{name}:ens13:net1:{address}\n" for name, address in VPC.items())
FIRST_OF_RANGE = [f"10.30.0.{number}" for number in range(1, NUM_NODES + 1)]
MIB = 1 << 20
EXPERIMENT = """
name: pairs
kubernetes: {image: host, gpus_per_pod: 1, job: pytorchjob}
cluster: {shapes: [4x1], device: cuda}
networks: [{name: nic, kubernetes: {attachment: host-device}}]
workloads:
  - {kind: command, name: mine, command: [train.py], metrics: [{name: a_s, regex: "a=([0-9.]+)"}]}
launches: 1
"""
ALL_PAIRS = """
import json, os, socket, threading, time
peers = os.environ["PEERS"].split(",")
until = time.monotonic() + float(os.environ["PATIENCE_S"])
for own in peers:
    try:
        server = socket.create_server((own, 5000), backlog=64)
        break
    except OSError:  # another pod's
        continue
else:
    raise SystemExit("none of the addresses is this pod's")
others, heard, reached = {*peers} - {own}, set(), set()

def listen():
    while True:
        heard.add(server.accept()[1][0])

threading.Thread(target=listen, daemon=True).start()
while time.monotonic() < until and not (heard >= others and reached >= others):
    for other in others - reached:
        try:
            socket.create_connection((other, 5000), 1).close()
            reached.add(other)
        except OSError:
            time.sleep(0.05)
print(json.dumps({"own": own, "heard": sorted(heard), "reached": sorted(reached)}))
"""
SUM = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.full((1 << 18,), dist.get_rank() + 1.0)
dist.all_reduce(ones)
print("mean", ones.mean().item(), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane, operators: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    """Nodes that have a vNIC in a VPC, which it gave an address, and a NIC at a switch."""
    config = KubeletConfig(
        **control_plane.for_kubelets(),
        folder=tmp_path_factory.mktemp("k"),
        nodes=[
            NodeSpec(name=name, resources={"cpu": "8", "nvidia.com/gpu": "1"}) for name in NODES
        ],
        fabrics=[
            Fabric(
                name="vpc",
                device="ens13",
                addresses={name: f"{address}/24" for name, address in VPC.items()},
                only_given_addresses=True,
            ),
            Fabric(name="switch", device="ens14"),
        ],
        default_image=replace(host_image(), user=12_345),
    )
    with Kubelet.start(config) as started:
        yield started


def rendered_job(folder: Path, device: str, ipam: str, env: dict[str, str]) -> list[Manifest]:
    """All objects of a master and its workers over one NIC, as the product writes them, but that
    their ranks' container runs ALL_PAIRS."""
    (folder / "train.py").touch()
    (folder / "map.yaml").write_text(MAP)
    face = f"{{attachment: host-device, devices: {device}, ipam: {ipam}}}"
    found = rendered(folder, f"networks.nic.kubernetes={face}", text=EXPERIMENT)
    # As a server has them: master and workers share parts of their templates here.
    objects: list[Manifest] = json.loads(json.dumps(found.rendered.objects))
    job = objects[-1]
    assert job["kind"] == "PyTorchJob"
    job["spec"]["runPolicy"]["cleanPodPolicy"] = "None"  # workers may outlive their master
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        (ranks,) = (each for each in spec["containers"] if each["name"] == "pytorch")
        ranks["command"] = ["python", "-I", "-S", "-c", ALL_PAIRS]
        ranks["env"] = [{"name": name, "value": value} for name, value in env.items()]
        del ranks["args"]
        spec["containers"] = [ranks]
    return objects


def logs_of(pods: Pods) -> list[str]:
    """Of each pod, its first container's."""
    return [
        pods.log(pod["metadata"]["name"], container=pod["spec"]["containers"][0]["name"])
        for pod in pods.find()
    ]


def wait_success(pods: Pods, job: Manifest, condition: str) -> None:
    """Until the job's controller says that it has ended."""

    def ends() -> list[str]:
        status = (pods.scratch.read(job) or {}).get("status") or {}
        true = [each for each in status.get("conditions") or () if each["status"] == "True"]
        return [each["type"] for each in true if each["type"] in (condition, "Failed")]

    wait_until(lambda: bool(ends()), f"the end of {job['kind']}")
    assert ends() == [condition], logs_of(pods)


def all_pairs(pods: Pods, folder: Path, device: str, ipam: str, **env: str) -> list[dict[str, Any]]:
    """Run it; what each pod printed."""
    for each in (objects := rendered_job(folder, device, ipam, env)):
        pods.apply(each)
    wait_success(pods, objects[-1], "Succeeded")
    for pod in pods.find():
        pods.wait_end(pod["metadata"]["name"])
    assert {pod["spec"]["nodeName"] for pod in pods.find()} == {*NODES}
    return [json.loads(text) for text in logs_of(pods)]


def all_reached(peers: list[str]) -> list[dict[str, Any]]:
    everyone = []
    for own in peers:
        others = sorted({*peers} - {own})
        everyone.append({"own": own, "heard": others, "reached": others})
    return everyone


def by_own(found: list[dict[str, Any]], peers: list[str]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda one: peers.index(one["own"]))


def test_a_master_and_its_workers_meet_in_a_vpc_by_the_address_map(
    kubelet: Kubelet, pods: Pods, tmp_path: Path
) -> None:
    """The init container of the rendered job gives each pod its node's address and the routes; that
    of the operator waits until the master's name resolves."""
    peers = [*VPC.values()]
    ipam = "{kind: address-map, map: map.yaml}"
    found = all_pairs(pods, tmp_path, "ens13", ipam, PEERS=",".join(peers), PATIENCE_S="300")
    assert by_own(found, peers) == all_reached(peers)
    assert all(kubelet.counters("vpc", name)["tx_packets"] for name in NODES)


@pytest.mark.thorough
def test_addresses_of_whereabouts_are_mute_in_a_vpc(
    kubelet: Kubelet, pods: Pods, tmp_path: Path
) -> None:
    before = [kubelet.counters("vpc", name)["dropped_packets"] for name in NODES]
    ipam = "{kind: whereabouts, ranges: 10.30.0.0/28}"
    peers = ",".join(FIRST_OF_RANGE)
    found = all_pairs(pods, tmp_path, "ens13", ipam, PEERS=peers, PATIENCE_S="3")
    assert sorted(one["own"] for one in found) == FIRST_OF_RANGE
    assert [(one["heard"], one["reached"]) for one in found] == [([], [])] * NUM_NODES
    after = [kubelet.counters("vpc", name)["dropped_packets"] for name in NODES]
    assert all(late > early for early, late in zip(before, after, strict=True))


@pytest.mark.thorough
def test_addresses_of_whereabouts_meet_at_a_switch(
    kubelet: Kubelet, pods: Pods, tmp_path: Path
) -> None:
    ipam = "{kind: whereabouts, ranges: 10.30.0.0/28}"
    peers = ",".join(FIRST_OF_RANGE)
    found = all_pairs(pods, tmp_path, "ens14", ipam, PEERS=peers, PATIENCE_S="300")
    assert by_own(found, FIRST_OF_RANGE) == all_reached(FIRST_OF_RANGE)
    assert kubelet.counters("switch", NODES[0])["dropped_packets"] == 0


ONE_A_NODE = {"requests": {"cpu": "5"}, "limits": {"cpu": "5"}}
"""Of a node's 8."""
ENV = [{"name": "OMP_NUM_THREADS", "value": "1"}, {"name": "USER", "value": "anyone"}]


def pytorch_job() -> list[Manifest]:
    job = samples.pytorch_job()
    job["spec"]["nprocPerNode"] = "1"
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        container |= {"command": torchrun(), "env": ENV, "resources": ONE_A_NODE}
    return [job]


def train_job() -> list[Manifest]:
    """With the runtime of its own that it needs."""
    job = samples.train_job()
    job["spec"]["trainer"] |= {"numProcPerNode": 1, "command": torchrun(), "env": ENV,
                               "resourcesPerNode": ONE_A_NODE}  # fmt: skip
    return [samples.training_runtime(), job]


def torchrun() -> list[str]:
    """All else is in the variables that the operator sets."""
    return ["torchrun", "--no-python", "python", "-c", SUM]


def indexed_job() -> list[Manifest]:
    """Without an operator: ranks find each other by host name and headless Service."""
    metadata = {"name": "ring"}
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "ring-0.ring", "MASTER_PORT": "29500"}
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    rank = {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}}
    container = {
        "name": "main",
        "image": "host",
        "command": ["python", "-c", SUM],
        "resources": ONE_A_NODE,
        "env": [*ENV, rank, *({"name": key, "value": one} for key, one in variables.items())],
    }
    pod = {"restartPolicy": "Never", "subdomain": "ring", "containers": [container]}
    template = {"metadata": {"labels": {"app": "ring"}}, "spec": pod}
    spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": template}
    service = {"clusterIP": "None", "selector": {"app": "ring"}, "publishNotReadyAddresses": True}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec},
    ]


@pytest.mark.measuring
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "condition"),
    [(pytorch_job, "Succeeded"), (train_job, "Complete"), (indexed_job, "Complete")],
)
def test_ranks_of_a_job_add_up_over_the_pod_network(
    kubelet: Kubelet, pods: Pods, make: Any, condition: str
) -> None:
    """An all_reduce of 1 MiB by gloo: each of two ranks sends all of it once."""

    def sent_bytes() -> int:
        return sum(kubelet.counters("pods", name)["tx_bytes"] for name in NODES)

    before = sent_bytes()
    objects = make()
    for each in objects:
        pods.apply(each)
    wait_success(pods, objects[-1], condition)
    logs = logs_of(pods)
    assert [text.splitlines()[-1] for text in logs] == ["mean 3.0 of 2"] * 2, logs
    assert sent_bytes() - before > 2 * MIB
