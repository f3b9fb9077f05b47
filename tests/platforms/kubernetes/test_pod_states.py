"""Is it said in words what a pod is doing, and whether waiting helps? From what the API says."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.platforms.kubernetes.numbering import by_number, number_of
from broadgauge.platforms.kubernetes.pod_states import PodStage, pod_state, waits

CACHE_IS_LATE = "failed to sync secret cache: timed out waiting for the condition"
SCHEDULED = {"type": "PodScheduled", "status": "True"}


def pod(status: dict[str, Any], name: str = "job-worker-0", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": "u", **metadata},
        "spec": {"nodeName": "node-b"} if "containerStatuses" in status else {},
        "status": status,
    }


def container(name: str = "pytorch", **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "imageID": "registry.example/a@sha256:00"}


def unschedulable(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {"phase": "Pending", "conditions": [condition | {"message": message}]}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "conditions": [SCHEDULED],
        "containerStatuses": [container(**state)],
    }


def ended(phase: str, **terminated: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": [container(terminated=terminated)]}


@pytest.mark.parametrize(
    ("status", "stage", "words", "is_doomed"),
    [
        (
            unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
            PodStage.UNSCHEDULED,
            "waiting for a node (0/3 nodes are available: 3 Insufficient nvidia.com/gpu.)",
            False,
        ),
        ({"phase": "Pending", "conditions": [SCHEDULED]}, PodStage.STARTING, "starting", False),
        (waiting("ContainerCreating"), PodStage.STARTING, "starting", False),
        (waiting("ErrImagePull", "denied"), PodStage.PULLING, "ErrImagePull: denied", False),
        (waiting("ImagePullBackOff", "b"), PodStage.PULLING, "ImagePullBackOff: b", False),
        (waiting("InvalidImageName", "x y"), PodStage.PULLING, "InvalidImageName: x y", True),
        (
            waiting("CreateContainerConfigError", 'secret "hf" not found'),
            PodStage.STARTING,
            'CreateContainerConfigError: secret "hf" not found',
            True,
        ),
        (
            waiting(
                "CreateContainerConfigError",
                "container has runAsNonRoot and image has non-numeric user (ada), cannot verify "
                "user is non-root",
            ),
            PodStage.STARTING,
            "verify user is non-root; `kubernetes.run_as_user` says as whom it runs, 0: as root",
            True,
        ),
        (
            waiting("CreateContainerConfigError", CACHE_IS_LATE),
            PodStage.STARTING,
            f"starting (CreateContainerConfigError: {CACHE_IS_LATE})",
            False,
        ),
        (
            waiting("CreateContainerConfigError", "couldn't find key token in Secret a/hf"),
            PodStage.STARTING,
            "find key token",
            True,
        ),
        *(
            (waiting(reason, "its words"), PodStage.STARTING, f"({reason}: its words)", False)
            for reason in (
                "CreateContainerError",
                "ImageInspectError",
                "SignatureValidationFailed",
                "RunContainerError",
            )
        ),
        (
            {
                "phase": "Pending",
                "conditions": [SCHEDULED],
                "initContainerStatuses": [container("addresses", terminated={"exitCode": 1})],
            },
            PodStage.INIT,
            "container addresses: exit code 1",
            True,
        ),
        (
            {
                "phase": "Failed",
                "conditions": [SCHEDULED],
                "initContainerStatuses": [container("init-pytorch", terminated={"exitCode": 1})],
            },
            PodStage.FAILED,
            "container init-pytorch: exit code 1: training-operator's wait for the first pod",
            True,
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [container("init", running={})]},
            PodStage.INIT,
            "preparing",
            False,
        ),
        (
            {"phase": "Running", "containerStatuses": [container(running={})]},
            PodStage.RUNNING,
            "running",
            False,
        ),
        (ended("Succeeded", exitCode=0), PodStage.SUCCEEDED, "done", False),
        (
            ended("Failed", exitCode=137, reason="OOMKilled", signal=9),
            PodStage.FAILED,
            "container pytorch: OOMKilled, exit code 137 (signal 9)",
            True,
        ),
        (
            ended("Running", exitCode=1, reason="Error"),  # the pod's phase follows
            PodStage.FAILED,
            "container pytorch: exit code 1",
            True,
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            PodStage.FAILED,
            "Evicted: low on memory",
            True,
        ),
        ({"phase": "Running", "reason": "NodeLost"}, PodStage.FAILED, "NodeLost", True),
        ({"phase": "Failed", "message": "too old"}, PodStage.FAILED, "too old", True),
    ],
)
def test_what_a_pod_does_is_said(
    status: dict[str, Any], stage: PodStage, words: str, is_doomed: bool
) -> None:
    state = pod_state(pod(status))
    assert (state.stage, state.is_doomed) == (stage, is_doomed)
    assert words in state.words
    assert state.words.startswith("job-worker-0")


@pytest.mark.parametrize(
    ("reason", "message", "is_tried_again"),
    [
        ("ErrImagePull", "denied", True),
        ("CreateContainerConfigError", CACHE_IS_LATE, True),
        ("CreateContainerConfigError", 'secret "hf" not found', False),
        ("CreateContainerError", "context deadline exceeded", False),
        ("ContainerCreating", "", False),
    ],
)
def test_what_registry_and_server_may_give_later_is_tried_again(
    reason: str, message: str, is_tried_again: bool
) -> None:
    assert pod_state(pod(waiting(reason, message))).is_tried_again is is_tried_again


def pod_with_leader(phase: str, ranks: dict[str, Any], leader: dict[str, Any]) -> Any:
    containers = [container("pytorch", **ranks), container("leader", **leader)]
    return pod_state(pod({"phase": phase, "containerStatuses": containers}))


KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
RUNS: dict[str, Any] = {"running": {}}


@pytest.mark.parametrize(
    ("ranks", "leader", "stage", "why", "is_leading"),
    [
        (RUNS, RUNS, PodStage.RUNNING, None, True),
        (RUNS, {"terminated": {"exitCode": 0}}, PodStage.RUNNING, None, False),
        (KILLED, RUNS, PodStage.FAILED, "container pytorch: OOMKilled, exit code 137", True),
        (RUNS, {"terminated": {"exitCode": 1}}, PodStage.FAILED, "leader: exit code 1", False),
        ({"terminated": {"exitCode": 0}}, RUNS, PodStage.SUCCEEDED, None, True),
    ],
)
def test_a_leader_is_told_from_the_ranks_beside_it(
    ranks: dict[str, Any],
    leader: dict[str, Any],
    stage: PodStage,
    why: str | None,
    is_leading: bool,
) -> None:
    """It ends at once in every pod but the first, and has more to tell of killed ranks."""
    state = pod_with_leader("Running", ranks, leader)
    assert (state.stage, state.is_leading) == (stage, is_leading)
    assert state.why is None if why is None else why in str(state.why)


def test_a_pod_that_is_being_deleted_is_gone_but_its_end_stays_its_end() -> None:
    running = {"phase": "Running", "containerStatuses": [container(running={})]}
    assert pod_state(pod(running, deletionTimestamp="now")).stage is PodStage.GONE
    failed = ended("Failed", exitCode=1)
    assert pod_state(pod(failed, deletionTimestamp="now")).stage is PodStage.FAILED


def test_a_pod_of_which_nothing_is_known_yet_waits_for_a_node() -> None:
    state = pod_state({"metadata": {"name": "a"}})
    assert (state.stage, state.node, state.exit_code) == (PodStage.UNSCHEDULED, None, None)


def test_the_image_is_known_by_its_digest() -> None:
    running = {"phase": "Running", "containerStatuses": [container(running={})]}
    assert pod_state(pod(running)).image_id == "registry.example/a@sha256:00"


def test_equal_words_are_said_once_with_their_number() -> None:
    lacking = unschedulable("no GPU")
    running = {"phase": "Running", "containerStatuses": [container(running={})]}
    states = [pod_state(pod(status)) for status in (lacking, lacking, running)]
    assert waits(states) == "2 pods waiting for a node (no GPU); 1 running"


def calls_to_say(num_pods: int) -> int:
    """Of functions, from the API's words of so many pods to the line that is shown."""
    running = {"phase": "Running", "containerStatuses": [container(running={})]}
    pods = [
        pod(
            unschedulable("no GPU") if number % 3 else running,
            name=f"job-{number}",
            labels={"batch.kubernetes.io/job-completion-index": str(number)},
        )
        for number in range(num_pods)
    ]
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        waits([*by_number([pod_state(each) for each in pods]).values()])
    finally:
        sys.setprofile(None)
    return calls


def test_eight_times_as_many_pods_are_said_in_eight_times_the_calls() -> None:
    calls_to_say(1)  # imports and caches
    few, many = calls_to_say(256), calls_to_say(2048)
    assert few > 256
    assert many < 8.1 * few


@pytest.mark.parametrize(
    ("labels", "number"),
    [
        (
            {
                "training.kubeflow.org/replica-type": "master",
                "training.kubeflow.org/replica-index": "0",
            },
            0,
        ),
        (
            {
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": "2",
            },
            3,
        ),
        ({"batch.kubernetes.io/job-completion-index": "5"}, 5),
        ({"app": "of others"}, None),
    ],
)
def test_a_pods_number_is_its_operators_word(labels: dict[str, str], number: int | None) -> None:
    assert number_of(pod_state(pod({"phase": "Pending"}, labels=labels))) == number


def test_of_two_pods_with_a_number_the_one_that_is_not_over_counts() -> None:
    labels = {"batch.kubernetes.io/job-completion-index": "0"}
    failed = pod_state(pod(ended("Failed", exitCode=1), name="a", labels=labels))
    fresh = pod_state(pod({"phase": "Pending"}, name="b", labels=labels))
    assert by_number([failed, fresh])[0].name == "b"
    assert by_number([fresh, failed])[0].name == "b"


KEYS = st.sampled_from(
    [
        *("phase", "reason", "message", "conditions", "type", "status", "containerStatuses"),
        *("initContainerStatuses", "state", "waiting", "terminated", "running", "exitCode"),
        *("signal", "name", "labels", "deletionTimestamp", "nodeName"),
    ]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["Failed", "Running", "pytorch"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=15,
)


@given(status=ODD, spec=ODD, labels=ODD)
def test_whatever_stands_in_a_pod_is_some_state(status: Any, spec: Any, labels: Any) -> None:
    """It has a name: api_errors.py sees to that."""
    body = {"metadata": {"name": "a", "labels": labels}, "spec": spec, "status": status}
    state = pod_state(body)
    assert waits([state])
    assert number_of(state) is None or number_of(state) == 0
