"""Does the API server hear of ends, restarts, faults and logs what a real kubelet would tell?"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet import cgroups
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import KubeletConfig, NodeSpec
from tests.kubernetes.pods import Pods, pod_manifest

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]
NODES = {
    "nodes": NodeSpec.several(2, prefix="end", resources={"cpu": "8"}),
    "restart_backoff_s": 0.1,
    "log_max_bytes": 64 << 10,
}


MEET = """
import os, socket, time
index = int(os.environ["JOB_COMPLETION_INDEX"])

def until_it_works(work):
    while True:
        try:
            return work()
        except OSError:
            time.sleep(0.05)

address = until_it_works(lambda: socket.gethostbyname(f"pair-{1 - index}.pair"))
print(address)
if index == 0:  # neither ends before both know each other: its name goes with a pod
    socket.create_server(("", 5000)).accept()
else:
    until_it_works(lambda: socket.create_connection((address, 5000)))
"""


def test_init_containers_run_in_order_before_several_containers(pods: Pods) -> None:
    shared = [{"name": "work", "mountPath": "/work"}]

    def container(name: str, script: str) -> dict[str, Any]:
        command = ["sh", "-c", script]
        return {"name": name, "image": "host", "command": command, "volumeMounts": shared}

    script = "until grep -q c /work/log; do sleep 0.02; done; cat /work/log"
    work = [{"name": "work", "emptyDir": {}}]
    manifest = pod_manifest("ordered", script, volumes=work, main_volumeMounts=shared)
    manifest["spec"]["initContainers"] = [
        container("first", "sleep 0.2; echo a >> /work/log"),
        container("second", "echo b >> /work/log"),
    ]
    manifest["spec"]["containers"].append(container("beside", "echo c >> /work/log"))
    assert pods.run(manifest) == "a\nb\nc\n"
    assert pods.status("ordered", "first")["state"]["terminated"]["reason"] == "Completed"


def test_exit_codes_signals_and_messages_are_in_the_status(pods: Pods) -> None:
    pods.apply(pod_manifest("fails", "echo last words > /dev/termination-log; exit 3"))
    pods.apply(pod_manifest("killed", "kill -KILL 1; sh -c 'kill -KILL $$$$'; exit $?"))
    pods.apply(pod_manifest("absent", "", main_command=["/no/such/program"]))
    for name in ("fails", "killed", "absent"):
        pods.wait_end(name)
        assert pods.phase(name) == "Failed"
    ended = pods.status("fails")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "last words\n")
    assert pods.status("killed")["state"]["terminated"]["exitCode"] == 137, "1 can't kill itself"
    assert pods.status("absent")["state"]["terminated"]["reason"] == "StartError"


def test_a_container_that_takes_too_much_memory_is_killed_for_it(pods: Pods) -> None:
    """Where this machine lets root limit it."""
    eats = "python -c 'x = bytearray(200 << 20); print(len(x))'"
    pods.apply(pod_manifest("eats", eats, main_resources={"limits": {"memory": "64Mi"}}))
    pods.wait_end("eats")
    ended = pods.status("eats")["state"]["terminated"]
    expected = (137, "OOMKilled") if can_limit_memory() else (0, "Completed")
    assert (ended["exitCode"], ended["reason"]) == expected


def can_limit_memory() -> bool:
    made = cgroups.make(f"process-kubelet-try-{os.getpid()}", 64 << 20)
    if made is not None:
        made.remove()
    return made is not None


def test_a_container_is_said_to_have_been_killed_for_want_of_memory(
    pods: Pods, kubelet: Kubelet
) -> None:
    pods.apply(pod_manifest("told", "sleep 3600"))
    pods.wait_phase("told", "Running")
    kubelet.oom(pods.namespace, "told")
    pods.wait_end("told")
    ended = pods.status("told")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_restarts_are_counted_and_the_previous_log_is_kept(pods: Pods) -> None:
    script = "test -e /seen/yes && sleep 3600; touch /seen/yes; echo first; exit 1"
    pods.apply(
        pod_manifest("again", script, restartPolicy="OnFailure",
                     volumes=[{"name": "seen", "emptyDir": {}}],
                     main_volumeMounts=[{"name": "seen", "mountPath": "/seen"}])
    )  # fmt: skip
    wait_until(
        lambda: (
            "running" in pods.status("again")["state"] and pods.status("again")["restartCount"] == 1
        ),
        "a restart",
    )
    assert pods.status("again")["lastState"]["terminated"]["exitCode"] == 1
    assert pods.log("again") == ""
    assert pods.log("again", previous="true") == "first\n"


def test_a_deleted_pod_is_asked_first_and_killed_after_its_grace(pods: Pods) -> None:
    polite = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    pods.apply(pod_manifest("polite", polite, terminationGracePeriodSeconds=50))
    pods.apply(pod_manifest("deaf", "echo ready; sleep 3600", terminationGracePeriodSeconds=1))
    for name in ("polite", "deaf"):
        pods.wait_log(name, "ready")
        pods.delete(name)
    for name in ("polite", "deaf"):
        pods.wait_gone(name)


def test_deadlines_and_evictions_end_a_pod(pods: Pods, kubelet: Kubelet) -> None:
    pods.apply(pod_manifest("late", "sleep 3600", activeDeadlineSeconds=1))
    for name in ("evicted", "asked"):
        pods.apply(pod_manifest(name, "sleep 3600"))
        pods.wait_phase(name, "Running")
    kubelet.evict(pods.namespace, "evicted")
    pods.evict("asked")
    pods.wait_gone("asked")
    for name, reason in (("late", "DeadlineExceeded"), ("evicted", "Evicted")):
        pods.wait_end(name)
        assert pods.get(name)["status"]["reason"] == reason


def test_an_image_that_is_not_there_backs_off(pods: Pods) -> None:
    pods.apply(pod_manifest("image", "true", main_image="missing/image:1"))
    assert "not found" in pods.wait_reason("image", "ErrImagePull")
    assert (
        pods.wait_reason("image", "ImagePullBackOff") == 'Back-off pulling image "missing/image:1"'
    )


def test_the_pods_of_a_job_find_each_other_by_name_and_the_job_is_complete(pods: Pods) -> None:
    """By host name and headless Service, as ranks find their leader."""
    template = pod_manifest(
        "", "", main_command=["python", "-c", MEET], labels={"app": "pair"}, subdomain="pair"
    )
    metadata = template.pop("metadata")
    del metadata["name"], template["apiVersion"], template["kind"]
    service = {"clusterIP": "None", "selector": {"app": "pair"}, "publishNotReadyAddresses": True}
    pods.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "pair"}, "spec": service}
    )
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "pair"},
        "spec": {
            "completions": 2,
            "parallelism": 2,
            "completionMode": "Indexed",
            "template": template | {"metadata": metadata},
        },
    }
    pods.apply(job)

    def conditions() -> list[str]:
        status = (pods.scratch.read(job) or {}).get("status") or {}
        return [one["type"] for one in status.get("conditions") or ()]

    wait_until(lambda: "Complete" in conditions(), "the job's completion")
    first, second = pods.find("app=pair")
    for pod, other in ((first, second), (second, first)):
        assert pods.log(pod["metadata"]["name"]).strip() == other["status"]["podIP"]


def test_logs_follow_across_rotation_and_forget_what_was_rotated_away(pods: Pods) -> None:
    script = ("i=0; while [ $i -lt 3000 ]; do echo line $i of a text that is long enough to rotate;"
              " i=$((i+1)); done; echo end")  # fmt: skip
    pods.apply(pod_manifest("chatty", "sleep 0.5; " + script))
    pods.wait_phase("chatty", "Running")
    followed = list(pods.follow("chatty"))
    numbers = [int(line.split()[1]) for line in followed if line.startswith("line")]
    assert numbers == sorted(numbers), "in order"
    assert followed[-1] == "end"
    rest = pods.log("chatty").splitlines()
    assert 0 < len(rest) < 1500, "earlier files are not read"
    assert pods.log("chatty", tailLines="2").splitlines() == rest[-2:]
    stamped = pods.log("chatty", timestamps="true", tailLines="1")
    assert stamped.split()[1] == "end"
    assert pods.log("chatty", sinceTime=stamped.split()[0]).endswith("end\n")
    assert pods.log("chatty", sinceTime="2100-01-01T00:00:00Z") == ""
    assert len(pods.log("chatty", limitBytes="10")) == 10


def test_a_stream_of_logs_can_be_cut(pods: Pods, kubelet: Kubelet) -> None:
    pods.apply(pod_manifest("talks", "echo hello; sleep 3600"))
    pods.wait_log("talks", "hello")
    lines = pods.follow("talks")
    assert next(lines) == "hello"
    assert kubelet.cut_log_streams() >= 1  # one that has just ended may still be counted
    assert list(lines) == [], "it ends, though the container runs"
    assert pods.phase("talks") == "Running"


def test_a_pod_knows_where_it_is_on_this_machine_and_dies_by_signal(
    pods: Pods, kubelet: Kubelet
) -> None:
    pods.apply(pod_manifest("here", "sleep 3600"))
    pods.wait_phase("here", "Running")
    found = kubelet.pod(pods.namespace, "here")
    assert found.ip == pods.get("here")["status"]["podIP"]
    kubelet.kill_container(pods.namespace, "here")
    pods.wait_end("here")
    ended = pods.status("here")["state"]["terminated"]
    assert (ended["exitCode"], ended["signal"], ended["reason"]) == (137, 9, "Error")


@pytest.mark.thorough
def test_an_api_server_that_was_away_hears_of_what_ended_meanwhile(
    control_plane: ControlPlane, pods: Pods
) -> None:
    pods.apply(pod_manifest("meanwhile", "sleep 1; echo done"))
    pods.wait_phase("meanwhile", "Running")
    control_plane.restart_api_server()
    pods.wait_end("meanwhile")
    assert pods.log("meanwhile") == "done\n"
    assert pods.run(pod_manifest("after", "echo watched again")) == "watched again\n"


@pytest.fixture
def short_lived(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Kubelet]:
    """One of its own, with one node, for a test that ends it."""
    config = KubeletConfig(
        **control_plane.for_kubelets(),
        folder=tmp_path / "k",
        nodes=[NodeSpec(name="short", labels={"life": "short"})],
    )
    with Kubelet.start(config) as started:
        yield started


def test_a_node_that_is_not_ready_takes_no_pods_until_it_is(
    pods: Pods, short_lived: Kubelet
) -> None:
    short_lived.node_not_ready("short")
    pods.apply(pod_manifest("waits", "echo ran", nodeSelector={"life": "short"}))
    # With words: a scheduler that has not heard of the node yet gives another reason first.
    pods.wait_event("waits", "FailedScheduling", "untolerated taint")
    short_lived.node_not_ready("short", ready=True)
    pods.wait_end("waits")


def test_nothing_is_left_of_a_node_that_is_gone_and_of_a_killed_kubelet(
    pods: Pods, kubelet: Kubelet, short_lived: Kubelet
) -> None:
    """Not even what has left its session; and nobody tells the API server."""
    for name, of in (("here", "end-0"), ("there", "short")):
        script = "setsid sleep 3600 & echo ready; wait"
        pods.apply(pod_manifest(name, script, nodeName=of))
        pods.wait_log(name, "ready")
    found = short_lived.pod(pods.namespace, "there").pids["main"]
    inside = Path(f"/proc/{found}/task/{found}/children").read_text().split()
    assert inside
    short_lived.kill()
    for pid in (found, *inside):
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), "its end")
    assert pods.phase("there") == "Running"
    pid = kubelet.pod(pods.namespace, "here").pids["main"]
    kubelet.node_gone("end-0")
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "its end")
    assert pods.phase("here") == "Running"
