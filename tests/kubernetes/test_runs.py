"""Does `run --on kubernetes` measure, record and leave nothing? With the rights alone that `render
--rbac` prints, as a user without a name, over a real API server, scheduler and operators; pods are
processes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.kubernetes import planted
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, Storage, host_image
from tests.kubernetes.runs import COLLECTIVES, EXPERIMENT, User, nic

from broadgauge.manifests.names import JOB, MANAGER, RUN
from broadgauge.messages.vocabulary import UNDER_READ_RATIO, CounterKind
from broadgauge.specs.errors import ExitCode
from broadgauge.specs.kubernetes.settings import MANAGED_BY

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]

EQUAL_WITHIN = 0.01
"""Counts of bytes: acknowledgements come together or not."""
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
        fabrics=[Fabric(name="vnic", device="ens13"), Fabric(name="sriov", device="ens14")],
        default_image=replace(host_image(), user=ANY_UID),
        storage=Storage(),
    )
    with Kubelet.start(config) as started:
        yield started


NETWORKS = [
    {"name": "pods", "rate_gbps": 1, "kubernetes": "pod"},
    {"name": "vnic", "rate_gbps": 1, "kubernetes": nic("ens13", "10.20.0.0/24")},
    {"name": "sriov", "rate_gbps": 1, "kubernetes": nic("ens14", "10.21.0.0/24")},
]
TRAIN = {
    "kind": "train",
    "steps": 4,
    "model": {"layers": 1, "hidden": 64, "heads": 2, "seq_len": 16, "vocabulary": 1024},
}


@pytest.mark.parametrize(
    ("kind", "networks"),
    [("job", NETWORKS), ("pytorchjob", NETWORKS[1:2])],
    ids=["job", "pytorchjob"],
)
def test_all_networks_are_measured_in_the_pods_of_one_job(
    user: User, kind: str, networks: list[dict[str, Any]], emulated_bytes: float
) -> None:
    """By collectives, a training and a command; bytes cross the network that is meant, and what
    was planted as a secret reaches ranks alone. (PyTorchJobs of several networks: the granite
    examples, in test_article_runs.)"""
    user.shell = planted.OF_SHELL
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}}
    user.scratch.create(secret | {"stringData": {"token": planted.BY_SECRET}})
    own = {"MINE": {"from_environment": True}}
    workloads = [TRAIN, COLLECTIVES, user.command(planted.script(), environment=own)]
    refs = {"HF_TOKEN": {"secret": "hub", "key": "token"}}
    settings = {"job": kind, "secrets": refs}
    user.write(networks=networks, workloads=workloads, kubernetes=settings)
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: user.num_running() == 2, "two pods")
        objects = list(planted.of_namespace(user.scratch))
        with planted.followed_logs(user.scratch, user.containers()) as logs:
            output = run.ended()
    records = user.records()
    names = {network["name"] for network in networks}
    assert [record["status"] for record in records] == ["ok"] * 3 * len(names), output
    assert {each["network"] for each in records} == names
    assert {each["block"] for each in records} == {0}  # all of them are pairs
    assert {each["metrics"].get("known_count") for each in records} == {None, 1.0}
    assert_bytes(records, names, emulated_bytes)
    assert_environment(user)
    texts = [
        *objects,
        *planted.of_folder(user.run_folder),
        *((f"log of {each}", "".join(lines).encode()) for each, lines in logs.items()),
        ("output", output.encode()),
    ]
    assert planted.places(texts) == []
    looked_at = {name.rpartition("/")[2] for name, _ in texts}
    assert {"order-0000.json.gz", "records.jsonl", "report.html"} <= looked_at
    assert sum(map(bool, logs.values())) == 3  # two agents and a leader
    assert user.left() == ["hub"]


def assert_bytes(records: list[dict[str, Any]], networks: set[str], emulated: float) -> None:
    """A step's, on each network: as many as emulated nodes count, but for what counters of
    interfaces are known to miss, and hardly more."""
    trained = [each for each in records if "loss" in each["metrics"]]
    found = {each["network"]: each["metrics"]["wire_bytes"] for each in trained}
    assert found.keys() == networks
    low = emulated * (1 - UNDER_READ_RATIO[CounterKind.INTERFACE]) * (1 - EQUAL_WITHIN)
    assert all(low <= bytes_ <= 1.05 * emulated for bytes_ in found.values()), (found, emulated)


@pytest.fixture(scope="module")
def emulated_bytes(tmp_path_factory: pytest.TempPathFactory) -> float:
    """That a step of the training puts on the wire of emulated nodes."""
    folder = tmp_path_factory.mktemp("emulated")
    experiment = {"platform": "emulated", "networks": NETWORKS[:1], "workloads": [TRAIN]}
    (folder / "e.yaml").write_text(json.dumps(EXPERIMENT | experiment))
    words = ("-m", "broadgauge", "run", "e.yaml")
    subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True)
    (path,) = folder.glob("runs/*/records.jsonl")
    (record,) = map(json.loads, path.read_text().splitlines())
    return float(record["metrics"]["wire_bytes"])


def assert_environment(user: User) -> None:
    environment = json.loads(next((user.run_folder / "environments").iterdir()).read_text())
    assert environment["platform"] == "kubernetes"
    assert environment["cluster"]["kubernetes"].startswith("v1.")
    assert environment["cluster"]["instance types"] is None  # no right to read nodes
    assert {*environment["nodes"][0]["hostnames"]} == {"worker-0", "worker-1"}
    assert environment["variables"]["GLOO_SOCKET_IFNAME"] in ("eth0", "net1", "net2")


SMALL = {"layers": 1, "hidden": 64, "heads": 2, "seq_len": 16, "vocabulary": 128}
BOTH = ["claim", "own"]
PHASES: list[dict[str, Any]] = [
    {"phase": "raw", "name": "raw", "size": "1 MiB", "storages": BOTH},
    {"phase": "load", "name": "loaded", "model": SMALL, "storages": BOTH},
    {"phase": "batches", "name": "batches", "samples": 8, "sample_size": "4 KiB", "storages": BOTH},
    {"phase": "checkpoint", "name": "saved", "model": SMALL, "storages": ["claim"]},
    {"phase": "raw", "name": "slowed", "size": "1 MiB", "storages": ["slow"]},
]
THROTTLED = {"read": "400 MB/s", "write": "200 MB/s"}


def test_storages_are_measured_in_the_pods_of_one_job(user: User) -> None:
    """On a claim that they share, and on each pod's own disk; throttled none is, as no pod may."""
    user.write(
        kubernetes={
            "volumes": [
                {"name": "data", "mount": "/data", "size_bytes": "1 GiB", "storage_class": "folder"}
            ],
            "fs_group": ANY_UID,
        },
        storages=[
            {"name": "claim", "path": "/data"},
            {"name": "own", "path": "."},
            {"name": "slow", "path": "/data", "emulated": THROTTLED},
        ],
        workloads=[{"kind": "storage", "repetitions": 1, **phase} for phase in PHASES],
    )
    user.give_rights()
    output = user.run(exit_code=ExitCode.TRIALS_FAILED)
    records = user.records()
    found = {(each["workload"], each["network"].split(", ")[1]): each for each in records}
    refused = found.pop(("slowed", "slow"))
    assert "storage `slow` can't be throttled: " in refused["error"]["message"]
    assert len(found) == 7, output
    for (name, _), record in found.items():
        assert record["status"] == "ok", output
        assert len(record["file_accesses"]) == (2 if name == "raw" else 1)
    assert "storage own in pods: /broadgauge/scratch/work is each pod's own emptyDir" in output
    assert "storage claim in pods" not in output
    assert user.left() == []


def test_a_trainjob_measures_and_its_pods_go_with_it(scripted: User) -> None:
    """One JobSet is made of it: none again while it is being deleted."""
    scripted.write(kubernetes={"job": "trainjob"}, launches=2)
    scripted.give_rights()
    output = scripted.run()
    assert scripted.statuses() == ["ok"] * 2, output
    about = [each["involvedObject"] for each in scripted.scratch.find("v1", "Event")]
    jobs = {each["uid"] for each in about if each["kind"] == "Job"}
    assert len(jobs) == 1, about
    assert scripted.left() == []


def test_a_run_that_was_let_go_is_collected_later(scripted: User) -> None:
    """Whatever platform its file names."""
    scripted.write(platform="emulated", launches=2)
    scripted.give_rights()
    output = scripted.run("experiment.yaml", "--on", "kubernetes", "--detach")
    assert "run --resume" in output
    assert scripted.num_running() == 2
    output = scripted.run("--resume", "last")
    assert scripted.statuses() == ["ok"] * 2, output
    assert scripted.left() == []


def test_cleanup_deletes_what_is_ours_and_nothing_else(scripted: User) -> None:
    """Of a run whose tool was killed. Which other kinds of jobs are there nobody knows without a
    right to list them."""
    scripted.write(launches=3)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for(lambda: scripted.num_running() == 2, "two pods")
        run.kill()
    name = str(scripted.place()["run"])
    theirs = {"run-alone": {RUN: name}, "manager-alone": {MANAGED_BY: MANAGER}}
    for each, labels in theirs.items():
        about = {"name": each, "labels": labels}
        scripted.scratch.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about})
    container = {"name": "main", "image": "host", "command": ["sleep", "600"]}
    about = {"name": "no-job-of-ours", "labels": {RUN: name, MANAGED_BY: MANAGER, JOB: name}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    scripted.scratch.create({"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec})
    listed = scripted.output("cleanup", "--on", "kubernetes", exit_code=ExitCode.PLATFORM_REFUSED)
    assert f"{name} (" in listed
    assert "2 Running" in listed
    assert not any(each in listed for each in (*theirs, "no-job-of-ours"))
    assert scripted.num_running() >= 2  # listed, and no more
    scripted.output("cleanup", "last")
    assert scripted.left() == sorted([*theirs, "no-job-of-ours"])
