"""What does a user read, and what is kept, when pods, nodes, logs and quotas fail amid a run?"""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from lightkube.models.core_v1 import Container, PodSpec, ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod, ResourceQuota
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.kubelet.client import Kubelet, KubeletFailedError
from tests.kubernetes.kubelet.config import Fabric, Image, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.test_runs import ANY_UID, User, until
from tests.sharding import one_of

from broadgauge.manifests.labels import MANAGED_BY, MANAGER

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
]
PREFIX = "broadgauge.dev/"


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=tmp_path_factory.mktemp("k") / "k",
        nodes=NodeSpec.several(2, resources={"cpu": "16", "memory": "32Gi"}),
        pod_network=Fabric(name="pods", rate_gbps=0.1),
        default_image=Image(env=host_image().env, user=ANY_UID),
    )
    with Kubelet.start(config) as started:
        yield started


def user_of(control_plane: ControlPlane, namespace: str, folder: Path) -> User:
    folder.mkdir(exist_ok=True)
    return User(
        folder=folder,
        kubeconfig=control_plane.kubeconfig(),
        namespace=namespace,
        cluster=control_plane.client(),
    )


@pytest.fixture
def user(
    control_plane: ControlPlane, kubelet: Kubelet, namespace: str, tmp_path: Path
) -> Iterator[User]:
    del kubelet
    found = user_of(control_plane, namespace, tmp_path)
    with found.cluster:
        yield found


def num_stored(user: User) -> int:
    found = [*(user.folder / "runs").glob("*/records.jsonl")]
    return len(found[0].read_text().splitlines()) if found else 0


def start(user: User) -> "subprocess.Popen[str]":
    """A run whose first trial is stored when this comes back."""
    tool = user.start("experiment.yaml")
    until(lambda: num_stored(user) > 0 or tool.poll() is not None, "a first record")
    assert tool.poll() is None, tool.communicate()[0]
    return tool


@pytest.mark.parametrize("which", one_of([0, 1], 0))
def test_a_pod_that_is_evicted_is_named_with_the_kubelets_words(
    user: User, kubelet: Kubelet, which: int
) -> None:
    """What was measured is kept, and what was not is measured by a job that follows."""
    user.write(launches=3)
    tool = start(user)
    name = user.pods()[which]
    kubelet.evict(user.namespace, name)
    output, _ = tool.communicate(timeout=240)
    assert name in output, output
    assert "Evicted: The node was low on resource: memory" in output, output
    assert sum(record["status"] == "ok" for record in user.records()) >= 2, output
    assert user.left() == []


@pytest.mark.thorough
def test_streams_that_are_cut_and_logs_that_rotate_lose_nothing(
    user: User, kubelet: Kubelet
) -> None:
    user.write(launches=4)
    is_over = threading.Event()
    tool = start(user)
    first = user.pods()[0]

    def disturb() -> None:
        while not is_over.wait(1.0):
            try:
                kubelet.rotate_logs(user.namespace, first)
                kubelet.cut_log_streams()
            except KubeletFailedError:  # the pod is over
                return

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    output, _ = tool.communicate(timeout=240)
    is_over.set()
    disturbing.join()
    assert tool.returncode == 0, output
    assert [record["status"] for record in user.records()] == ["ok"] * 4, output
    assert user.left() == []


def test_a_quota_that_leaves_out_a_pod_is_said_in_its_own_words(user: User) -> None:
    """Only the events of the job say it: its second pod is never made."""
    quota = ResourceQuota(
        metadata=ObjectMeta(name="small", namespace=user.namespace),
        spec=ResourceQuotaSpec(hard={"pods": "1"}),
    )
    user.cluster.create(quota)
    until(lambda: is_held(user), "the controller of quotas")
    user.write(kubernetes={"pending_limit_s": 15})
    output = user.run(exit_code=4)
    assert "after 15 s: 1 running; 1 pod can't be made:" in output, output
    assert "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1" in output
    assert user.left() == []


def is_held(user: User) -> bool:
    """Before its controller has counted, it lets everything in."""
    status = user.cluster.get(ResourceQuota, "small", namespace=user.namespace).status
    return status is not None and bool(status.hard)


@pytest.mark.thorough
def test_two_runs_share_a_namespace_with_what_is_somebody_elses(
    user: User, control_plane: ControlPlane
) -> None:
    """Each deletes its own; `cleanup` too."""
    for name, labels in {
        "theirs-of-us": {MANAGED_BY: MANAGER, f"{PREFIX}team": "a"},
        "theirs-of-a-run": {f"{PREFIX}run": "theirs", f"{PREFIX}job": "theirs"},
    }.items():
        user.cluster.create(
            Pod(
                metadata=ObjectMeta(name=name, namespace=user.namespace, labels=labels),
                spec=PodSpec(
                    containers=[Container(name="main", image="host", command=["sleep", "600"])],
                    terminationGracePeriodSeconds=0,
                ),
            )
        )
    other = user_of(control_plane, user.namespace, user.folder / "other")
    users = [user, other]
    for each in users:
        each.write(launches=1)
    tools = [each.start("experiment.yaml") for each in users]
    for each, tool in zip(users, tools, strict=True):
        output, _ = tool.communicate(timeout=240)
        assert tool.returncode == 0, output
        assert [record["status"] for record in each.records()] == ["ok"], output
    other.cluster.close()
    theirs = ["theirs-of-a-run", "theirs-of-us"]
    assert user.left() == theirs
    cleanup = [sys.executable, "-m", "broadgauge", "cleanup", "--namespace", user.namespace]
    assert "theirs" not in user.command(*cleanup)
    assert user.pods() == theirs


def test_ctrl_c_deletes_what_was_made_and_keeps_what_was_measured(user: User) -> None:
    user.write(launches=3)
    tool = start(user)
    tool.send_signal(signal.SIGINT)
    output, _ = tool.communicate(timeout=240)
    assert tool.returncode == 130, output
    assert "Traceback" not in output, output
    assert "broadgauge run --resume" in output, output
    assert user.left() == []
    assert user.cluster_jobs() == []
    kept = user.records()
    assert [record["status"] for record in kept if record["status"] == "ok"], kept


@pytest.mark.thorough
def test_a_run_that_was_ended_by_ctrl_c_is_resumed(user: User) -> None:
    user.write(launches=3)
    tool = start(user)
    tool.send_signal(signal.SIGINT)
    tool.communicate(timeout=240)
    output = user.run("--resume", "last")
    assert sum(record["status"] == "ok" for record in user.records()) == 3, output
    assert user.left() == []


@pytest.mark.thorough
def test_a_worker_that_is_killed_is_named_with_its_last_lines(user: User) -> None:
    (user.folder / "mine.py").write_text(
        "import os, signal, sys, time\n"
        "print('loss 0.5', flush=True)\n"
        "if os.environ['RANK'] == '1':\n"
        "    print('the last line of a rank', file=sys.stderr, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "time.sleep(60)\n"
    )
    metrics = [{"name": "loss", "regex": r"loss ([\d.]+)"}]
    user.write(
        workloads=[{"kind": "command", "command": ["mine.py"], "metrics": metrics}], launches=1
    )
    tool = user.start("experiment.yaml")
    output, _ = tool.communicate(timeout=240)
    (record,) = user.records()
    assert record["status"] != "ok", output
    told = json.dumps(record["error"])
    assert "SIGKILL" in told, told
    assert "the last line of a rank" in told, told
    assert "rank 1" in told, told
    assert user.left() == []


@pytest.mark.thorough
def test_a_run_in_pods_is_compared_with_one_on_emulated_nodes(user: User) -> None:
    """Each case with its own, and what else differs is said."""
    user.write(networks=[{"name": "slow", "kubernetes": "pod", "rate_gbps": 0.1}], launches=2)
    user.run()
    in_pods = user.run_folder
    user.run("experiment.yaml", "--on", "emulated")
    compare = [sys.executable, "-m", "broadgauge", "compare"]
    told = " ".join(user.command(*compare, str(in_pods), str(user.run_folder)).split())
    assert "collectives 2x1" in told, told
    assert "platform: kubernetes in A, emulated in B" in told, told


@pytest.mark.thorough
def test_a_node_that_is_gone_is_named(user: User, kubelet: Kubelet) -> None:
    """The last test: its node does not come back. Nobody tells the API server of its pod's end."""
    user.write(launches=4, kubernetes={"pending_limit_s": 5})
    tool = start(user)
    second = user.pods()[1]
    node = kubelet.pod(user.namespace, second).node
    kubelet.node_gone(node)
    output, _ = tool.communicate(timeout=280)
    assert second in output, output
    assert node in output, output
    assert num_stored(user) >= 1
    assert user.left() == []
