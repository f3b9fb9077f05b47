"""Proves tests/kubernetes/kubelet by whole jobs: ranks of the real operators meet and add up, and a
master and seven workers reach each other where, and only where, their addresses allow it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, host_image
from tests.manifests.requests import experiment_of, request_of

from broadgauge.agent import bundle
from broadgauge.manifests.labels import JOB
from broadgauge.manifests.rendering import render_job

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]

NUM_NODES = 8
NODES = [f"job-{number}" for number in range(NUM_NODES)]
VPC = {name: f"10.249.{65 if name == NODES[0] else 66}.{4 + n}" for n, name in enumerate(NODES)}
"""The first node's NIC is in another subnet than the others', as in the published map."""
MAP = "".join(f"{name}:ens13:net1:{address}\n" for name, address in VPC.items())
FIRST_OF_RANGE = [f"10.30.0.{number}" for number in range(1, NUM_NODES + 1)]
MIB = 1 << 20

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
    control_plane: ControlPlane, operators: Operators, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    """Eight nodes, each with a vNIC in a VPC, which it gave an address, and a NIC at a switch."""
    del operators
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=tmp_path_factory.mktemp("k") / "k",
        nodes=[
            NodeSpec(
                name=name, resources={"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}
            )
            for name in NODES
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
    )  # fmt: skip
    with Kubelet.start(config) as started:
        yield started


@pytest.fixture
def http(control_plane: ControlPlane) -> Iterator[httpx2.Client]:
    with control_plane.http() as client:
        yield client


def rendered_job(namespace: str, device: str, ipam: dict[str, Any], env: dict[str, str]) -> Any:
    """All objects of a master and seven workers over one NIC, as the product writes them, but that
    their ranks' container runs ALL_PAIRS."""
    attached = {"attachment": "host-device", "devices": [device], "ipam": ipam}
    experiment = experiment_of(
        namespace=namespace,
        networks=[{"name": "nic", "kubernetes": attached}],
        shape=f"{NUM_NODES}x2",
    )
    address_map = MAP if ipam["kind"] == "address-map" else None
    request = request_of(experiment, program=bundle.build(), address_map=address_map)
    objects = render_job(request).objects
    job = objects[-1]
    assert job["kind"] == "PyTorchJob"
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        (ranks,) = replica["template"]["spec"]["containers"]
        ranks["command"] = ["python", "-I", "-S", "-c", ALL_PAIRS]
        ranks["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return objects


def pods_of(http: httpx2.Client, namespace: str) -> list[Manifest]:
    answer = http.get(f"/api/v1/namespaces/{namespace}/pods").raise_for_status()
    return list(answer.json()["items"])


def logs_of(http: httpx2.Client, namespace: str) -> dict[str, str]:
    """By pod; of its first container."""
    found = {}
    for pod in pods_of(http, namespace):
        name = pod["metadata"]["name"]
        container = {"container": pod["spec"]["containers"][0]["name"]}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
        found[name] = http.get(path, params=container).text
    return found


def wait_success(http: httpx2.Client, job: Manifest, condition: str) -> None:
    """Until the job's controller says that it has ended."""
    namespace, objects = job["metadata"]["namespace"], Objects(http)

    def ends() -> list[str]:
        status = (objects.read(job) or {}).get("status") or {}
        true = [each for each in status.get("conditions") or () if each["status"] == "True"]
        return [each["type"] for each in true if each["type"] in (condition, "Failed")]

    wait_until(lambda: bool(ends()), limit_s=150, what=f"the end of {job['kind']}")
    assert ends() == [condition], logs_of(http, namespace)


def all_pairs(
    http: httpx2.Client, namespace: str, device: str, ipam: dict[str, Any], **env: str
) -> list[dict[str, Any]]:
    """Run it; what each pod printed."""
    for each in (objects := rendered_job(namespace, device, ipam, env)):
        Objects(http).apply(each)
    wait_success(http, objects[-1], "Succeeded")

    def have_ended() -> bool:
        return all(pod["status"]["phase"] == "Succeeded" for pod in pods_of(http, namespace))

    wait_until(have_ended, limit_s=90, what="the end of all pods")
    assert all(JOB in pod["metadata"]["labels"] for pod in pods_of(http, namespace))
    assert {pod["spec"]["nodeName"] for pod in pods_of(http, namespace)} == {*NODES}
    return [json.loads(text) for text in logs_of(http, namespace).values()]


def all_reached(peers: list[str]) -> list[dict[str, Any]]:
    everyone = []
    for own in peers:
        others = sorted({*peers} - {own})
        everyone.append({"own": own, "heard": others, "reached": others})
    return everyone


def by_own(found: list[dict[str, Any]], peers: list[str]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda one: peers.index(one["own"]))


def test_a_master_and_seven_workers_meet_in_a_vpc_by_the_address_map(
    kubelet: Kubelet, http: httpx2.Client, namespace: str
) -> None:
    """The init container of the rendered job gives each pod its node's address and the routes."""
    peers = [*VPC.values()]
    ipam = {"kind": "address-map", "map": "map.yaml"}
    found = all_pairs(http, namespace, "ens13", ipam, PEERS=",".join(peers), PATIENCE_S="60")
    assert by_own(found, peers) == all_reached(peers)
    assert all(kubelet.counters("vpc", name)["tx_packets"] for name in NODES)


def test_addresses_of_whereabouts_are_mute_in_a_vpc(
    kubelet: Kubelet, http: httpx2.Client, namespace: str
) -> None:
    before = [kubelet.counters("vpc", name)["dropped_packets"] for name in NODES]
    ipam = {"kind": "whereabouts", "ranges": ["10.30.0.0/28"]}
    peers = ",".join(FIRST_OF_RANGE)
    found = all_pairs(http, namespace, "ens13", ipam, PEERS=peers, PATIENCE_S="3")
    assert sorted(one["own"] for one in found) == FIRST_OF_RANGE
    assert [(one["heard"], one["reached"]) for one in found] == [([], [])] * NUM_NODES
    after = [kubelet.counters("vpc", name)["dropped_packets"] for name in NODES]
    assert all(late > early for early, late in zip(before, after, strict=True))


def test_addresses_of_whereabouts_meet_at_a_switch(
    kubelet: Kubelet, http: httpx2.Client, namespace: str
) -> None:
    ipam = {"kind": "whereabouts", "ranges": ["10.30.0.0/28"]}
    peers = ",".join(FIRST_OF_RANGE)
    found = all_pairs(http, namespace, "ens14", ipam, PEERS=peers, PATIENCE_S="60")
    assert by_own(found, FIRST_OF_RANGE) == all_reached(FIRST_OF_RANGE)
    assert kubelet.counters("switch", NODES[0])["dropped_packets"] == 0


ONE_A_NODE = {"requests": {"cpu": "5"}, "limits": {"cpu": "5"}}
"""Of a node's 8."""
ENV = [{"name": "OMP_NUM_THREADS", "value": "1"}, {"name": "USER", "value": "anyone"}]


def pytorch_job(namespace: str) -> list[Manifest]:
    job = samples.pytorch_job(namespace)
    job["spec"]["nprocPerNode"] = "1"
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        container |= {"command": torchrun(), "env": ENV, "resources": ONE_A_NODE}
    return [job]


def train_job(namespace: str) -> list[Manifest]:
    job = samples.train_job(namespace)
    job["spec"]["trainer"] |= {"numProcPerNode": 1, "command": torchrun(), "env": ENV,
                               "resourcesPerNode": ONE_A_NODE}  # fmt: skip
    return [job]


def torchrun() -> list[str]:
    """All else is in the variables that the operator sets."""
    return ["torchrun", "--no-python", "python", "-c", SUM]


def indexed_job(namespace: str) -> list[Manifest]:
    """Without an operator: ranks find each other by host name and headless Service."""
    metadata = {"namespace": namespace, "name": "ring"}
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
@pytest.mark.parametrize(
    ("make", "condition"),
    [
        (pytorch_job, "Succeeded"),
        pytest.param(train_job, "Complete", marks=pytest.mark.thorough),
        pytest.param(indexed_job, "Complete", marks=pytest.mark.thorough),
    ],
)
def test_ranks_of_a_job_add_up_over_the_pod_network(
    kubelet: Kubelet, http: httpx2.Client, namespace: str, make: Any, condition: str
) -> None:
    """An all_reduce of 1 MiB by gloo: each of two ranks sends all of it once."""

    def sent_bytes() -> int:
        return sum(kubelet.counters("pods", name)["tx_bytes"] for name in NODES)

    before = sent_bytes()
    objects = make(namespace)
    for each in objects:
        Objects(http).apply(each)
    wait_success(http, objects[-1], condition)
    logs = logs_of(http, namespace)
    assert [text.splitlines()[-1] for text in logs.values()] == ["mean 3.0 of 2"] * 2, logs
    assert sent_bytes() - before > 2 * MIB
