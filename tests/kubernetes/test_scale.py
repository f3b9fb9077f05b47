"""How much does a run of 256 pods ask of an API server, and with which rights?

The server is real and says itself what it was asked. Its 256 nodes are Node objects, and the test
writes what their pods' kubelets would; only the first pod runs, since a leader's log is followed.
"""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.kubernetes.cluster.control_plane import AUDITED, ControlPlane
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.rights import give_rights
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import KubeletConfig, NodeSpec
from tests.manifests.requests import experiment_of, request_of

from broadgauge.manifests.labels import labels_of
from broadgauge.manifests.rbac import rights_file
from broadgauge.messages.frames import FrameWriter
from broadgauge.messages.leader import LeaderHello
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.job_place import JobPlace, PlaceFile
from broadgauge.platforms.kubernetes.pod_states import PodStage
from broadgauge.platforms.kubernetes.pod_warnings import ASK_EVERY_S, MOST_ASKED
from broadgauge.platforms.kubernetes.pods_wait import SETTLE_S
from broadgauge.platforms.kubernetes.running_job import RunningJob

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]
NUM_PODS = 256
NODES = [f"scale-{number}" for number in range(NUM_PODS)]
START_S = 200.0
RUN = JOB = "demo"
HELLO = FrameWriter("leader").write(
    LeaderHello(version="0", pid=1, generation=0, next_number=0)
).decode()  # fmt: skip


@pytest.fixture(scope="module")
def nodes(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    """The first has a kubelet."""
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=tmp_path_factory.mktemp("k") / "k",
        nodes=[NodeSpec(name=NODES[0])],
    )
    others = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in NODES[1:]
    ]
    with Kubelet.start(config) as kubelet, control_plane.http() as http:
        for each in others:
            http.post("/api/v1/nodes", json=each).raise_for_status()
        yield kubelet
        for each in others:
            Objects(http).delete(each)


OWNER = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": JOB},
    "spec": {
        "managedBy": "broadgauge.dev/test",  # its pods are the test's to make
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "pytorch", "image": "host"}],
            }
        },
    },
}


def pod(number: int, uid: str) -> Manifest:
    """Of the job of this uid, bound to its node."""
    labels = labels_of(RUN, JOB, {}) | {"batch.kubernetes.io/job-completion-index": str(number)}
    say = ["python", "-c", f"import time; print({HELLO!r}, end='', flush=True); time.sleep(600)"]
    spec = {
        "nodeName": NODES[number],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "pytorch", "image": "host", "command": say}],
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": JOB, "uid": uid, "controller": True}
    about = {"name": f"{JOB}-{number}", "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


@pytest.fixture
def user(control_plane: ControlPlane, namespace: str) -> str:
    """Who may what `render --rbac` prints, in this namespace, and nothing else."""
    request = request_of(experiment_of(namespace=namespace), "job")
    name = f"system:serviceaccount:{namespace}:{request.name}-runner"
    control_plane.add_user(name, [AUDITED])
    with control_plane.http() as http:
        give_rights(http, rights_file(request).objects, name)
    return name


@pytest.fixture
def job(
    control_plane: ControlPlane,
    user: str,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RunningJob]:
    """As a tool has it that has created one."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig(user)))
    with control_plane.http() as http:
        answer = http.post(f"/apis/batch/v1/namespaces/{namespace}/jobs", json=OWNER)
        uid = answer.raise_for_status().json()["metadata"]["uid"]
    place = JobPlace(
        context=None,
        namespace=namespace,
        run=RUN,
        name=JOB,
        kind="job",
        number=0,
        uid=uid,
        num_pods=NUM_PODS,
    )
    said: list[str] = []
    api = Api.connect(None)
    started = RunningJob(api, place, PlaceFile(tmp_path), tmp_path, said.append)
    yield started
    started.watch.close()
    assert said == []


def set_status(http: httpx2.Client, namespace: str, number: int, **status: Any) -> None:
    """As a kubelet does."""
    path = f"/api/v1/namespaces/{namespace}/pods/{JOB}-{number}/status"
    form = {"Content-Type": "application/merge-patch+json"}
    http.patch(path, json={"status": status}, headers=form).raise_for_status()


def watch_them_start(http: httpx2.Client, namespace: str, job: RunningJob) -> list[str]:
    """All that the tool shows meanwhile: not a line for each pod, but ten in a second at most."""
    shown: list[str] = []
    begun_s = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.wait_for_pods, NUM_PODS, START_S, shown.append, lambda: None)
        for number in range(1, NUM_PODS):
            container = {"name": "pytorch", "image": "host", "imageID": "host", "ready": True,
                         "restartCount": 0,
                         "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}  # fmt: skip
            set_status(http, namespace, number, phase="Running", containerStatuses=[container])
        waiting.result()
    assert len(shown) <= (time.monotonic() - begun_s) / SETTLE_S + 2, shown
    return shown


def most_at_once(events: list[dict[str, Any]]) -> int:
    """Of requests that last: each has a first and a last event."""
    is_open: set[str] = set()
    most = 0
    for event in events:
        if event["stage"] == "ResponseStarted":
            is_open.add(event["auditID"])
        else:
            is_open.discard(event["auditID"])
        most = max(most, len(is_open))
    return most


def kinds_of(events: list[dict[str, Any]]) -> Counter[str]:
    """Each request once: `watch pods`."""
    begun = {event["auditID"]: event for event in events}
    found: Counter[str] = Counter()
    for event in begun.values():
        about = event["objectRef"]
        kind = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        found[f"{event['verb']} {kind}"] += 1
    return found


def test_256_pods_are_one_watch_and_one_log_in_one_namespace(
    nodes: Kubelet,
    control_plane: ControlPlane,
    user: str,
    namespace: str,
    job: RunningJob,
) -> None:
    with control_plane.http() as http:
        for number in range(NUM_PODS):
            path = f"/api/v1/namespaces/{namespace}/pods"
            http.post(path, json=pod(number, job.place.uid or "")).raise_for_status()
        shown = watch_them_start(http, namespace, job)
        assert sorted(job.pods()) == [*range(NUM_PODS)]
        assert any(" pods " in line and line.endswith(" running") for line in shown), shown
        attached = job.attach(-1)
        for cuts in (1, 2):
            assert nodes.cut_log_streams() >= 1
            wait_until(
                lambda: kinds_of(control_plane.requests_of(user))["get pods/log"] > cuts,  # noqa: B023  asked at once
                limit_s=120,
                what="the log to be followed again",
            )
        gone = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
        set_status(http, namespace, 200, **gone)
        wait_until(
            lambda: job.pods()[200].stage is PodStage.FAILED, limit_s=120, what="the eviction"
        )
    assert job.pods()[200].words == (
        f"{JOB}-200 on {NODES[200]}: failed (Evicted: The node was low on memory.)"
    )
    attached.close()
    events = control_plane.requests_of(user)
    asked = kinds_of(events)
    # Of pods that start slowly, on a busy machine: not more than that in this time.
    assert asked.pop("list events", 0) <= MOST_ASKED * (START_S / ASK_EVERY_S + 1)
    assert asked == {"list pods": 1, "watch pods": 1, "get pods/log": 3}
    logs = [each for each in events if each["objectRef"].get("subresource") == "log"]
    assert {each["objectRef"]["name"] for each in logs} == {f"{JOB}-0"}
    assert most_at_once(logs) == 1
    assert {each["objectRef"]["namespace"] for each in events} == {namespace}
    assert {each["annotations"]["authorization.k8s.io/decision"] for each in events} == {"allow"}
