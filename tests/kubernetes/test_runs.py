"""Does `broadgauge run` on Kubernetes train, record and leave nothing, whatever happens meanwhile?

A real API server, scheduler and operators; pods are processes on two emulated nodes, whose pod
network has a line rate.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightkube import Client
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Pod, Secret
from tests.kubernetes import planted
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.cluster.programs import find_programs
from tests.kubernetes.cluster.rights import give_rights
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import (
    Fabric,
    Image,
    KubeletConfig,
    NodeSpec,
    Storage,
    host_image,
)
from tests.sharding import one_of
from tests.stolen_trials import judging

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
]
POD_NETWORK_GBPS = 0.1
VNIC_GBPS = 0.4
VNIC = {
    "attachment": "host-device",
    "devices": ["ens13"],
    "ipam": {"kind": "whereabouts", "ranges": "10.20.0.0/24"},
}
ANY_UID = 1_000_680_000
"""As OpenShift gives a namespace: no name, no home."""


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane, operators: Operators, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    del operators
    folder = tmp_path_factory.mktemp("k")
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=folder / "k",
        nodes=NodeSpec.several(2, resources={"cpu": "8", "memory": "16Gi"}),
        pod_network=Fabric(name="pods", rate_gbps=POD_NETWORK_GBPS),
        fabrics=[Fabric(name="vnic", device="ens13", rate_gbps=VNIC_GBPS)],
        default_image=Image(env=host_image().env, user=ANY_UID),
        storage=Storage(folder=folder / "volumes"),
    )
    with Kubelet.start(config) as started:
        yield started


@dataclass(slots=True, kw_only=True)
class User:
    """Somebody with a kubeconfig, a folder and the command."""

    folder: Path
    kubeconfig: Path
    namespace: str
    cluster: Client
    shell: dict[str, str] = field(default_factory=dict)
    """Variables of theirs."""

    def write(self, **changes: Any) -> None:
        """An experiment of theirs: two nodes, collectives over the pod network."""
        experiment: dict[str, Any] = {
            "name": "pods",
            "platform": "kubernetes",
            "kubernetes": {"namespace": self.namespace, "image": "host", "job": "job"},
            "cluster": {"shapes": ["2x1"], "device": "cpu"},
            "networks": [{"name": "pod", "kubernetes": "pod"}],
            "workloads": [COLLECTIVES],
            "launches": 2,
        }
        for key, value in changes.items():
            is_merged = isinstance(experiment.get(key), dict)
            experiment[key] = experiment[key] | value if is_merged else value
        (self.folder / "experiment.yaml").write_text(json.dumps(experiment))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "broadgauge", "run", *arguments],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        """Its output, whole."""
        ended = self.start(*(arguments or ("experiment.yaml",)))
        output, _ = ended.communicate(timeout=600)
        assert ended.returncode == exit_code, output
        return output

    def command(self, *command: str) -> str:
        """Another command's output."""
        ended = self.ended(*command)
        ended.check_returncode()
        return ended.stdout

    def ended(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """However it ended."""
        environment = self._environment()
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def _environment(self) -> dict[str, str]:
        own = {"KUBECONFIG": str(self.kubeconfig), "COLUMNS": "200"}
        return os.environ | own | self.shell

    def kubectl(self, *words: str) -> None:
        program = find_programs().kubectl
        self.command(str(program), "--namespace", self.namespace, *words)

    @property
    def run_folder(self) -> Path:
        return max((self.folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime)

    def records(self) -> list[dict[str, Any]]:
        """Of the newest run."""
        lines = (self.run_folder / "records.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def pods(self) -> list[str]:
        found = self.cluster.list(Pod, namespace=self.namespace)
        return sorted(str(pod.metadata and pod.metadata.name) for pod in found)

    def num_running(self) -> int:
        found = self.cluster.list(Pod, namespace=self.namespace)
        return sum(pod.status is not None and pod.status.phase == "Running" for pod in found)

    def cluster_jobs(self) -> list[str]:
        """Plain Jobs."""
        return [
            str(each.metadata.name) for each in self.cluster.list(Job, namespace=self.namespace)
        ]

    def left(self) -> list[str]:
        """What is there beside the namespace's own."""
        kinds: tuple[Any, ...] = (Pod, Secret, ConfigMap)
        found = (
            each for kind in kinds for each in self.cluster.list(kind, namespace=self.namespace)
        )
        return [name for each in found if (name := each.metadata.name) != "kube-root-ca.crt"]


@pytest.fixture
def user(
    control_plane: ControlPlane, kubelet: Kubelet, namespace: str, tmp_path: Path
) -> Iterator[User]:
    del kubelet
    with control_plane.client() as cluster:
        yield User(
            folder=tmp_path,
            kubeconfig=control_plane.kubeconfig(),
            namespace=namespace,
            cluster=cluster,
        )


def until(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, limit_s=180, what=what)


KINDS = one_of(["pytorchjob", "trainjob", "jobset", "job"], "pytorchjob")
TRAIN = {
    "kind": "train",
    "steps": 4,
    "model": {"layers": 1, "hidden": 32, "heads": 2, "seq_len": 16},
}
COLLECTIVES = {"kind": "collectives", "ops": ["all_reduce"], "sizes": ["1 MiB"]}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_job_measures_and_leaves_nothing_and_shows_no_secret(
    user: User, control_plane: ControlPlane, kind: str
) -> None:
    """Planted values reach the ranks, and stand in no object, log, file or output."""
    (user.folder / "mine.py").write_text(planted.script())
    user.shell = planted.OF_SHELL
    about = ObjectMeta(name="hub", namespace=user.namespace)
    user.cluster.create(Secret(metadata=about, stringData={"token": planted.BY_SECRET}))
    metrics = [{"name": "known_count", "regex": r"known (\d)"}]
    command = {
        "kind": "command",
        "command": ["mine.py"],
        "metrics": metrics,
        "environment": {"MINE": {"from_environment": True}},
    }
    trained = [] if kind == "pytorchjob" else [TRAIN]  # as that, test_platform_arm.py trains
    user.write(
        kubernetes={"job": kind, "secrets": {"HF_TOKEN": {"secret": "hub", "key": "token"}}},
        workloads=[COLLECTIVES, command, *trained],
        launches=1,
    )
    tool = user.start("experiment.yaml")
    until(lambda: user.num_running() == 2 or tool.poll() is not None, "two pods that run")
    with control_plane.http() as http:
        objects = list(planted.of_namespace(http, user.namespace))
        with planted.followed_logs(http, user.namespace, user.pods()) as logs:
            output, _ = tool.communicate(timeout=240)
    assert tool.returncode == 0, output
    records = user.records()
    assert [record["status"] for record in records] == ["ok"] * (2 + len(trained)), output
    assert {record["metrics"].get("known_count") for record in records} == {None, 1.0}
    assert sum("step_time_s" in record["metrics"] for record in records) == len(trained)
    exported = [sys.executable, "-m", "broadgauge", "export", "last", "--format", "json"]
    shown = user.command(sys.executable, "-m", "broadgauge", "show", str(user.run_folder))
    said = {"output": output, "export": user.command(*exported), "show": shown}
    texts = [
        *objects,
        *((pod, bytes(log)) for pod, log in logs.items()),
        *planted.of_folder(user.run_folder),
        *((name, text.encode()) for name, text in said.items()),
    ]
    assert planted.places(texts) == []
    names = {name.rpartition("/")[2] for name, _ in texts}
    assert {"order-00000.json.gz", "records.jsonl", "report.html"} <= names
    assert len(logs) == 2
    assert all(logs.values())
    environment = json.loads(next((user.run_folder / "environments").iterdir()).read_text())
    assert environment["platform"] == "kubernetes"
    hosts = {name for node in environment["nodes"] for name in node["hostnames"]}
    assert hosts == {"worker-0", "worker-1"}
    assert environment["cluster"]["kubernetes"].startswith("v1.")
    assert f"kubernetes {environment['cluster']['kubernetes']}" in shown
    assert user.left() == ["hub"]


@pytest.mark.parametrize("kind", one_of(["pytorchjob", "jobset", "job"], "job"))
def test_a_job_that_is_deleted_takes_along_what_a_killed_tool_has_left(
    user: User, kind: str
) -> None:
    """As Kubernetes deletes it when its time to live is over."""
    user.write(kubernetes={"job": kind}, launches=4)
    tool = user.start("experiment.yaml")
    until(lambda: user.num_running() == 2 or tool.poll() is not None, "two pods that run")
    os.kill(tool.pid, signal.SIGKILL)
    tool.communicate()
    assert len(user.left()) > 3
    place = json.loads((user.run_folder / "logs/kubernetes.json").read_text())
    plural = {"pytorchjob": "pytorchjobs.kubeflow.org", "jobset": "jobsets.jobset.x-k8s.io"}
    user.kubectl("delete", plural.get(kind, "jobs.batch"), place["name"])
    until(lambda: user.left() == [], f"the end of all that {kind} has")


@pytest.mark.needs_cores
def test_all_networks_are_in_one_job_and_ranks_use_each(user: User) -> None:
    """The faster network is the faster one, and a step's bytes cross the one that is meant."""
    lines = "for n in range(12):\n    time.sleep(0.01)\n    print(f'step {n} took 0.01 s')\n"
    script = f"import time\n{lines}"
    (user.folder / "mine.py").write_text(script)
    user.write(
        networks=[{"name": "pod", "kubernetes": "pod"}, {"name": "vnic", "kubernetes": VNIC}],
        workloads=[
            COLLECTIVES,
            {
                "kind": "command",
                "command": ["mine.py"],
                "metrics": [
                    {"name": "step_time_s", "regex": r"step \d+ took ([\d.]+) s", "skip_first": 1}
                ],
            },
        ],
        kubernetes={"job": "pytorchjob"},
        launches=1,
    )
    output = user.run()
    records = user.records()
    assert [record["status"] for record in records] == ["ok"] * 4, output
    assert "preflight: 2 calls between 2 pods over 2 networks" in output, output
    said = user.command(sys.executable, "-m", "broadgauge", "logs", "last", "--pod")
    assert "network vnic: net1 10.20.0." in said, said
    carried = {}
    for record in records:
        if record["collectives"]:
            carried[record["link"]["ceiling_gbps"]] = record["collectives"][0]["busbw_gbyte_per_s"]
    slow, fast = sorted(carried)
    # One stream, counted for 0.2 s: a burst, or 6 ms that waited in a buffer, may add 3 %.
    with judging(records):
        assert 0.8 < slow / POD_NETWORK_GBPS < 1.03
        assert 0.8 < fast / VNIC_GBPS < 1.03
        assert carried[fast] > 1.4 * carried[slow]


def test_a_tool_that_is_killed_is_followed_by_one_that_collects(user: User) -> None:
    user.write(launches=4)
    tool = user.start("experiment.yaml")
    until(lambda: (user.folder / "runs").is_dir() and bool(_stored(user)), "a first record")
    os.kill(tool.pid, signal.SIGKILL)
    tool.communicate()
    pods = user.pods()
    assert len(pods) == 2  # they live on
    user.run("--resume", str(user.run_folder))
    assert [record["status"] for record in user.records()] == ["ok"] * 4
    trials = [record["record_id"] for record in user.records()]
    assert len(set(trials)) == len(trials)
    assert user.left() == []


def be_runner(user: User, control_plane: ControlPlane) -> str:
    """With the rights that `render --rbac` prints for their experiment, and no more: who they are
    then."""
    rights = user.command(
        *(sys.executable, "-m", "broadgauge", "render", "experiment.yaml"),
        *("--rbac", "--job", "job", "--set", f"kubernetes.namespace={user.namespace}"),
    )
    name = f"system:serviceaccount:{user.namespace}:pods-runner"
    with control_plane.http() as http:
        give_rights(http, filter(None, yaml.safe_load_all(rights)), name)
    user.kubeconfig = control_plane.add_user(name)
    return name


def _stored(user: User) -> list[str]:
    path = user.run_folder / "records.jsonl"
    return path.read_text().splitlines() if path.is_file() else []


def test_a_server_that_is_away_for_a_while_costs_nothing(
    user: User, control_plane: ControlPlane, kubelet: Kubelet
) -> None:
    """For one who has the Role's rights: a server that starts refuses all of them at first."""
    user.write(launches=4)
    be_runner(user, control_plane)
    tool = user.start("experiment.yaml")
    until(lambda: (user.folder / "runs").is_dir() and bool(_stored(user)), "a first record")
    control_plane.restart_api_server()
    kubelet.cut_log_streams()
    output, _ = tool.communicate(timeout=240)
    assert tool.returncode == 0, output
    assert [record["status"] for record in user.records()] == ["ok"] * 4
    assert user.left() == []


def test_a_pod_that_is_killed_is_named_and_what_is_left_is_run(
    user: User, kubelet: Kubelet
) -> None:
    user.write(launches=3)
    tool = user.start("experiment.yaml")
    until(lambda: (user.folder / "runs").is_dir() and bool(_stored(user)), "a first record")
    [_, second] = user.pods()
    kubelet.oom(user.namespace, second)
    output, _ = tool.communicate(timeout=240)
    assert second in output, output
    assert sum(record["status"] == "ok" for record in user.records()) >= 2, output
    assert user.left() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"node_selector": {"gpu": "h100"}, "pending_limit_s": 8}, "didn't match Pod's node"),
        ({"image": "missing/here:1", "pending_limit_s": 8}, "image (ErrImagePull"),
        ({"namespace": "nowhere"}, "nowhere"),
        pytest.param(
            {"memory_bytes": "64 GiB", "pending_limit_s": 8},
            "Insufficient memory",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_what_keeps_pods_from_running_is_said_and_cleaned(
    user: User, changes: dict[str, Any], words: str
) -> None:
    user.write(kubernetes=changes)
    output = user.run(exit_code=4)
    assert words in output, output
    assert user.left() == []


def test_a_device_that_no_node_has_is_said_in_the_words_of_the_pods_events(user: User) -> None:
    """No status says it: the pod is "starting" for as long as it is waited for."""
    network = {"name": "vnic", "kubernetes": VNIC | {"devices": ["ens99"]}}
    user.write(networks=[network], kubernetes={"pending_limit_s": 13})
    output = user.run(exit_code=4)
    assert "after 13 s: " in output, output
    assert "starting (FailedCreatePodSandBox: " in output, output
    assert "ens99" in output.partition("after 13 s")[2], output
    assert user.left() == []


@pytest.mark.thorough
def test_a_volume_that_can_not_be_mounted_is_said(user: User, kubelet: Kubelet) -> None:
    kubelet.fail_mounts(10_000)
    volume = {"name": "kept", "mount": "/kept", "size_bytes": "1 GiB", "storage_class": "folder"}
    user.write(kubernetes={"volumes": [volume], "pending_limit_s": 13})
    output = user.run(exit_code=4)
    kubelet.fail_mounts(0)
    assert "after 13 s: " in output, output
    assert "starting (FailedMount: MountVolume.SetUp failed for volume" in output, output
    assert "mount.nfs: Connection timed out" in output, output
    assert user.left() == []


def test_a_user_without_rights_is_told_which_one_is_missing(
    user: User, control_plane: ControlPlane
) -> None:
    user.kubeconfig = control_plane.add_user("somebody")
    user.write()
    output = user.run(exit_code=4)
    assert "you may not create, delete, get, list, patch configmaps in namespace" in output, output
    assert "render EXPERIMENT --rbac" in output
    assert user.left() == []


@pytest.mark.thorough
def test_a_run_that_was_let_go_is_collected_from_another_terminal(user: User) -> None:
    user.write(platform="emulated")
    output = user.run("experiment.yaml", "--on", "kubernetes", "--detach")
    assert "run --resume" in output
    assert "72 h after its end Kubernetes deletes job and logs" in output
    assert len(user.pods()) == 2
    user.run("--resume", "last")
    assert [record["status"] for record in user.records()] == ["ok"] * 2
    assert user.left() == []


def test_cleanup_deletes_what_is_ours_and_nothing_else(user: User) -> None:
    user.write(launches=4)
    tool = user.start("experiment.yaml")
    until(lambda: (user.folder / "runs").is_dir() and bool(_stored(user)), "a first record")
    os.kill(tool.pid, signal.SIGKILL)
    tool.communicate()
    place = json.loads((user.run_folder / "logs/kubernetes.json").read_text())
    for name, labels in {
        "theirs": {"broadgauge.dev/run": place["run"]},
        "theirs-too": {"app.kubernetes.io/managed-by": "broadgauge"},
    }.items():
        user.cluster.create(
            ConfigMap(metadata=ObjectMeta(name=name, namespace=user.namespace, labels=labels))
        )
    command = [sys.executable, "-m", "broadgauge", "cleanup", "--namespace", user.namespace]
    listed = user.command(*command)
    assert place["run"] in listed
    assert "theirs" not in listed
    assert len(user.pods()) == 2  # listed, and no more
    user.command(*command, place["run"])
    assert sorted(user.left()) == ["theirs", "theirs-too"]


@pytest.mark.thorough
def test_a_model_is_on_its_volume_before_any_pod_trains(user: User) -> None:
    """Fetched once: a second run finds it."""
    model = user.folder / "a-model"
    model.mkdir()
    (model / "weights.txt").write_text("0.25")
    for folder in (user.folder, *user.folder.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o055)  # pods are another user
    (user.folder / "mine.py").write_text(
        "import os, pathlib\n"
        "folder = pathlib.Path(os.environ['BROADGAUGE_MODEL'])\n"
        "print('loss', (folder / 'weights.txt').read_text())\n"
    )
    metrics = [{"name": "loss", "regex": r"loss ([\d.]+)"}]
    user.write(
        kubernetes={
            "volumes": [
                {
                    "name": "models",
                    "mount": "/models",
                    "size_bytes": "1 GiB",
                    "storage_class": "folder",
                }
            ],
            "prepare": {"volume": "models", "model": str(model)},
            "fs_group": 2000,
        },
        workloads=[{"kind": "command", "command": ["mine.py"], "metrics": metrics}],
        launches=1,
    )
    output = user.run()
    (record,) = user.records()
    assert record["status"] == "ok", output
    assert record["metrics"]["loss"] == 0.25
    assert "has prepared its volume: all is there" in output, output
    (model / "weights.txt").unlink()  # it is not looked at again
    output = user.run()
    assert user.records()[0]["metrics"]["loss"] == 0.25, output
    assert user.left() == []


@pytest.mark.thorough
def test_what_can_not_be_fetched_is_said_before_any_pod_trains(user: User) -> None:
    user.write(
        kubernetes={
            "volumes": [
                {
                    "name": "models",
                    "mount": "/models",
                    "size_bytes": "1 GiB",
                    "storage_class": "folder",
                }
            ],
            "prepare": {"volume": "models", "model": "/nothing/here.tar.gz"},
            "fs_group": 2000,
        },
        launches=1,
    )
    output = user.run(exit_code=4)
    assert "could not prepare its volume" in output, output
    assert "nothing/here.tar.gz" in output, output
    assert user.left() == []


@pytest.mark.thorough
def test_each_case_has_a_job_of_its_own_where_that_is_asked(user: User) -> None:
    """And nothing is called a pair that was not measured side by side."""
    user.write(
        allocation="per_case",
        networks=[{"name": "pod", "kubernetes": "pod"}, {"name": "vnic", "kubernetes": VNIC}],
        launches=2,
    )
    output = user.run()
    records = user.records()
    assert [record["status"] for record in records] == ["ok"] * 4, output
    assert [record["network"] for record in records] == ["pod", "pod", "vnic", "vnic"]
    assert len({record["block"] for record in records}) == 4
    assert "no comparison is paired" in output, output
    logs = [path.name for path in (user.run_folder / "logs").glob("*.pod0.log")]
    assert len(logs) == 2, logs
    exported = [sys.executable, "-m", "broadgauge", "export", "last", "--format", "json"]
    told = user.command(*exported)
    assert '"is_paired": false' in told
    assert '"is_paired": true' not in told
    assert user.left() == []


@pytest.mark.thorough
def test_a_run_of_jobs_one_by_one_is_resumed(user: User) -> None:
    user.write(
        allocation="per_case",
        networks=[{"name": "pod", "kubernetes": "pod"}, {"name": "vnic", "kubernetes": VNIC}],
        launches=2,
    )
    tool = user.start("experiment.yaml")
    until(lambda: (user.folder / "runs").is_dir() and len(_stored(user)) == 3, "the second job")
    os.kill(tool.pid, signal.SIGKILL)
    tool.communicate()
    output = user.run("--resume", "last")
    assert [record["status"] for record in user.records()] == ["ok"] * 4, output
    assert user.left() == []


@pytest.mark.thorough
def test_credentials_that_are_revoked_end_the_tool_and_lose_nothing(
    user: User, control_plane: ControlPlane, kubelet: Kubelet
) -> None:
    """The pods go on; who logs in again collects what they have measured."""
    user.write(launches=8)
    name = be_runner(user, control_plane)
    tool = user.start("experiment.yaml")
    until(lambda: (user.folder / "runs").is_dir() and bool(_stored(user)), "a first record")
    with control_plane.http(name) as http:
        control_plane.revoke_user(name)
        until(lambda: http.get("/version").status_code == 401, "the token to be refused")
    kubelet.cut_log_streams()  # one that is open is not judged again
    output, _ = tool.communicate(timeout=240)
    assert tool.returncode != 0, output
    assert "your credentials are not accepted" in output, output
    assert "log in again" in output
    assert "Traceback" not in output, output
    assert len(user.pods()) == 2
    num_stored = len(_stored(user))
    user.kubeconfig = control_plane.add_user(name)
    user.run("--resume", str(user.run_folder))
    assert len(user.records()) > num_stored
    assert [record["status"] for record in user.records()] == ["ok"] * 8
    assert user.left() == []
