"""Proves status.py: phase, conditions and container states, by Kubernetes' "Pod Lifecycle"."""

from typing import Any

import pytest
from tests.kubernetes.kubelet.status import (
    ContainerRecord,
    PodRecord,
    pod_status,
    terminated,
    waiting,
)

Json = dict[str, Any]
RUNNING: Json = {"running": {"startedAt": "t1"}}


def ended(code: int) -> Json:
    return {"terminated": {"exitCode": code}}


def container(state: Json, **rest: Any) -> ContainerRecord:
    launches = 0 if "waiting" in state else 1
    return ContainerRecord(**{"name": "main", "image": "i", "state": state, "launches": launches}
                           | rest)  # fmt: skip


def pod(*records: ContainerRecord, policy: str = "Never", **rest: Any) -> PodRecord:
    return PodRecord(
        records=list(records), host_ip="127.77.0.1", start_time="t0", restart_policy=policy, **rest
    )


CREATING = waiting("ContainerCreating")
BACKOFF = waiting("CrashLoopBackOff", "back-off 1s")


@pytest.mark.parametrize(
    ("record", "phase"),
    [
        (pod(container(CREATING)), "Pending"),
        (pod(container(RUNNING)), "Running"),
        (pod(container(ended(0))), "Succeeded"),
        (pod(container(ended(1))), "Failed"),
        (pod(container(ended(0)), container(RUNNING)), "Running"),
        (pod(container(ended(0)), container(ended(3))), "Failed"),
        (pod(container(ended(1)), policy="OnFailure"), "Running"),
        (pod(container(ended(0)), policy="OnFailure"), "Succeeded"),
        (pod(container(ended(0)), policy="Always"), "Running"),
        (pod(container(BACKOFF, launches=2), policy="Always"), "Running"),
        (pod(container(ended(1), is_init=True), container(CREATING)), "Failed"),
        (pod(container(BACKOFF, is_init=True, launches=1), container(CREATING),
             policy="OnFailure"), "Pending"),
        (pod(container(RUNNING, is_init=True), container(CREATING)), "Pending"),
        (pod(container(RUNNING), override=("Failed", "Evicted", "low")), "Failed"),
    ],
)  # fmt: skip
def test_the_phase(record: PodRecord, phase: str) -> None:
    assert record.phase == phase


@pytest.mark.parametrize(
    ("record", "initialized", "ready", "reason"),
    [
        (pod(container(CREATING)), "True", "False", "ContainersNotReady"),
        (pod(container(RUNNING), ip="10.88.0.2"), "True", "True", None),
        (pod(container(ended(0)), ip="10.88.0.2"), "True", "False", "PodCompleted"),
        (pod(container(ended(1)), ip="10.88.0.2"), "True", "False", "PodFailed"),
        (pod(container(RUNNING, is_init=True), container(CREATING)),
         "False", "False", "ContainersNotReady"),
        (pod(container(RUNNING, is_init=True, restarts=True), container(RUNNING)),
         "True", "True", None),
    ],
)  # fmt: skip
def test_conditions(record: PodRecord, initialized: str, ready: str, reason: str | None) -> None:
    status = pod_status(record, {}, "t1")
    found = {one["type"]: one for one in status["conditions"]}
    assert found["Initialized"]["status"] == initialized
    for kind in ("Ready", "ContainersReady"):
        assert (found[kind]["status"], found[kind].get("reason")) == (ready, reason)
    assert found["PodScheduled"]["status"] == "True"


def test_a_condition_keeps_the_time_since_when_it_is_so() -> None:
    since: dict[str, tuple[str, str]] = {}
    main = container(CREATING)
    record = pod(main)
    pod_status(record, since, "t1")
    main.state, main.launches = RUNNING, 1
    status = pod_status(record, since, "t2")
    times = {one["type"]: one["lastTransitionTime"] for one in status["conditions"]}
    assert (times["PodScheduled"], times["Ready"]) == ("t1", "t2")


def test_addresses_and_what_ended_it_as_a_whole() -> None:
    plain = pod_status(pod(container(CREATING)), {}, "t1")
    assert not {"podIP", "podIPs", "reason", "initContainerStatuses"} & plain.keys()
    assert (plain["hostIP"], plain["startTime"]) == ("127.77.0.1", "t0")
    record = pod(container(RUNNING), ip="10.88.0.2", override=("Failed", "Evicted", "low"))
    status = pod_status(record, {}, "t1")
    assert (status["podIP"], status["podIPs"]) == ("10.88.0.2", [{"ip": "10.88.0.2"}])
    assert (status["reason"], status["message"]) == ("Evicted", "low")


def test_a_containers_status() -> None:
    main = container(RUNNING, last_state=ended(1), restart_count=2, container_id="process://a")
    init = container(ended(0), name="first", is_init=True)
    status = pod_status(pod(init, main), {}, "t1")
    (first,) = status["initContainerStatuses"]
    assert (first["ready"], first["state"], first["restartCount"]) == (True, ended(0), 0)
    assert "containerID" not in first
    assert status["containerStatuses"] == [
        {"name": "main", "image": "i", "imageID": "i", "state": RUNNING, "lastState": ended(1),
         "ready": True, "started": True, "restartCount": 2, "containerID": "process://a"}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "was_oom", "expected"),
    [
        ({"exit_code": 0, "signal": 0}, False, {"exitCode": 0, "reason": "Completed"}),
        ({"exit_code": 3, "signal": 0}, False, {"exitCode": 3, "reason": "Error"}),
        ({"exit_code": 137, "signal": 9}, False,
         {"exitCode": 137, "reason": "Error", "signal": 9}),
        ({"exit_code": 137, "signal": 9}, True,
         {"exitCode": 137, "reason": "OOMKilled", "signal": 9}),
    ],
)  # fmt: skip
def test_the_end_of_a_container(said: Json, was_oom: bool, expected: Json) -> None:
    record = container(RUNNING, was_oom=was_oom, container_id="process://a")
    found = terminated(record, said, "t2", "last words")["terminated"]
    times = {"startedAt": "t1", "finishedAt": "t2", "containerID": "process://a"}
    assert found == expected | times | {"message": "last words"}
    assert "message" not in terminated(record, said, "t2", None)["terminated"]
