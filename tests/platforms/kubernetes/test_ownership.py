"""Is a pod of others left alone, whatever its labels say, and are our job's found?"""

from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    NAMESPACE,
    PODS,
    Answer,
    Asked,
    FakeApi,
    listed,
    pod,
    refused,
)

from broadgauge.manifests.names import JOB, MANAGER, RUN
from broadgauge.platforms.kubernetes import owned
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.numbering import by_number
from broadgauge.platforms.kubernetes.owned import delete_all
from broadgauge.platforms.kubernetes.ownership import (
    created,
    found_again,
    is_made_by,
    is_pod_of,
)
from broadgauge.platforms.kubernetes.pod_states import pod_state
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.kubernetes.settings import MANAGED_BY, JobKind

COMPLETION = "batch.kubernetes.io/job-completion-index"
OURS = {MANAGED_BY: MANAGER, RUN: "r", JOB: "r"}
OF_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "r", "uid": "u", "controller": True}


def place_of(kind: JobKind = "job", **known: Any) -> JobPlace:
    return JobPlace(
        context=None, namespace=NAMESPACE, run="r", name="r", kind=kind, number=0, **known
    )


def owned_pod(pod_name: str, number: int, **owner: Any) -> dict[str, Any]:
    """With all of our labels; its owner as our Job's, but for what is said."""
    made = pod(pod_name, **OURS, **{COMPLETION: str(number)})
    made["metadata"]["ownerReferences"] = [OF_JOB | owner]
    return made


def forged_pod(name: str, number: int) -> dict[str, Any]:
    """With all of our labels, and of nobody."""
    return pod(name, **OURS, **{COMPLETION: str(number)})


@pytest.mark.parametrize(
    ("kind", "owner", "is_ours"),
    [
        ("job", {}, True),
        ("job", {"uid": "another"}, False),
        ("job", {"controller": False}, False),
        ("job", {"kind": "ReplicaSet", "apiVersion": "apps/v1"}, False),
        ("job", {"apiVersion": "batch.example/v1"}, False),
        ("job", {"name": "r-node-0"}, False),
        ("pytorchjob", {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}, True),
        ("pytorchjob", {}, False),
        ("trainjob", {"name": "r-node-0", "uid": "the operator's"}, True),
        ("trainjob", {"name": "r-x"}, False),
    ],
)
def test_a_pod_is_ours_by_its_controller(
    kind: JobKind, owner: dict[str, Any], is_ours: bool
) -> None:
    place = place_of(kind, uid="u", num_pods=1)
    assert is_pod_of(place, pod_state(owned_pod("a", 0, **owner))) is is_ours


def test_a_pod_is_a_jobs_own_by_its_uid_alone() -> None:
    job = {"kind": "Job", "metadata": {"name": "r", "uid": "u"}}
    assert is_made_by(job, pod_state(owned_pod("a", 0)))
    assert not is_made_by(job, pod_state(owned_pod("a", 0, uid="another")))
    assert not is_made_by(job, pod_state(forged_pod("a", 0)))
    assert not is_made_by({"metadata": {}}, pod_state(forged_pod("a", 0)))


def test_a_forged_pod_is_none_of_the_jobs_nodes_and_one_beyond_its_number_neither() -> None:
    """Its name comes first, so that it would win where labels decide."""
    place = place_of(uid="u", num_pods=2)
    seen = [forged_pod("a-forged", 0), owned_pod("r-0", 0), owned_pod("r-7", 7)]
    ours = [state for state in map(pod_state, seen) if is_pod_of(place, state)]
    found = by_number(ours, place.num_pods)
    assert {number: each.name for number, each in found.items()} == {0: "r-0"}


def test_only_pods_that_a_job_of_ours_controls_are_deleted(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned, "LOOK_EVERY_S", 0.005)
    left = {
        each["metadata"]["name"]: each
        for each in (
            owned_pod("left", 0),
            forged_pod("forged", 0),
            owned_pod("theirs", 0, name="other"),
        )
    }

    def delete(asked: Asked) -> Answer:
        del left[asked.path.rpartition("/")[2]]
        return Answer()

    fake.script("GET", PODS, lambda _: listed(*left.values()))
    for name in left:
        fake.script("DELETE", f"{PODS}/{name}", delete)
    assert delete_all(fake.api(), NAMESPACE, "r", lambda _: None)
    assert left.keys() == {"forged", "theirs"}


def test_the_job_that_was_created_is_known_also_after_a_kill_in_between(fake: FakeApi) -> None:
    job = {"kind": "Job", "metadata": {"name": "r", "uid": "u"}}
    secret = {"kind": "Secret", "metadata": {"name": "r", "uid": "s"}}
    known = created(place_of(), [secret, job], 2)
    assert (known.uid, known.num_pods) == ("u", 2)
    assert found_again(fake.api(), known) is known
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/r"
    assert found_again(fake.api(), place_of()).uid is None  # it was not created
    fake.script("GET", path, Answer(body=job))
    assert found_again(fake.api(), place_of()).uid == "u"
    fake.script("GET", path, refused(403, "Forbidden", "not you"))
    with pytest.raises(PlatformError, match="not you"):
        found_again(fake.api(), place_of())
