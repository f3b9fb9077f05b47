"""Is a queue waited for, and a job that no queue knows not?"""

from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    NAMESPACE,
    Answer,
    FakeApi,
    FakeTime,
    listed,
    refused,
)

from broadgauge.platforms.kubernetes import admission as admission_module
from broadgauge.platforms.kubernetes.admission import ASK_EVERY_S, UNMANAGED_AFTER_S, Admission
from broadgauge.platforms.kubernetes.json_shapes import JsonMap

KUEUE = "/apis/kueue.x-k8s.io"
WORKLOADS = f"{KUEUE}/v1beta1/namespaces/{NAMESPACE}/workloads"


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    found = FakeTime()
    monkeypatch.setattr(admission_module, "time", found)
    return found


def job(**spec: Any) -> JsonMap:
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    return {
        "kind": "TrainJob",
        "metadata": {"name": "r", "uid": "u", "labels": labels},
        "spec": spec,
    }


def workload(*owners: str) -> JsonMap:
    references = [{"kind": "TrainJob", "name": each, "uid": each} for each in owners]
    return {"metadata": {"name": "trainjob-r", "ownerReferences": references}}


def with_kueue(fake: FakeApi, *workloads: JsonMap) -> Admission:
    kinds = Answer(body={"resources": [{"name": "workloads"}]})
    fake.script("GET", f"{KUEUE}/v1beta1", kinds)
    fake.script("GET", WORKLOADS, listed(*workloads))
    return Admission(api=fake.api(), namespace=NAMESPACE)


@pytest.mark.parametrize(
    ("spec", "labels", "words"),
    [
        ({"suspend": True}, True, "queued in team"),
        ({"runPolicy": {"suspend": True}}, True, "queued in team"),
        ({"suspend": True}, False, "suspended"),
        ({"suspend": False}, True, None),
        ({}, True, None),
    ],
)
def test_who_holds_a_job_back_is_said(
    fake: FakeApi, spec: dict[str, Any], labels: bool, words: str | None
) -> None:
    asked = job(**spec)
    if not labels:
        asked["metadata"]["labels"] = {}
    held = Admission(api=fake.api(), namespace=NAMESPACE).held(asked)
    assert (held and held.words) == words
    assert held is None or held.is_managed
    assert fake.asked == []


def test_a_job_that_has_a_workload_waits_for_as_long_as_it_takes(
    fake: FakeApi, time: FakeTime
) -> None:
    admission = with_kueue(fake, workload("another"), workload("u"))
    for _ in range(3600):
        held = admission.held(job(suspend=True))
        assert held is not None
        assert held.is_managed
        time.sleep(1.0)
    assert 0 < fake.count("GET", WORKLOADS) <= 3600 / ASK_EVERY_S


@pytest.mark.parametrize("workloads", [[], [workload("another")]])
def test_a_job_that_nobody_manages_is_told_with_its_kind(
    fake: FakeApi, time: FakeTime, workloads: list[JsonMap]
) -> None:
    admission = with_kueue(fake, *workloads)
    held = admission.held(job(suspend=True))
    assert held is not None
    assert held.is_managed  # Kueue may be slow
    time.sleep(UNMANAGED_AFTER_S + 1)
    held = admission.held(job(suspend=True))
    assert held is not None
    assert not held.is_managed
    assert "Kueue has no Workload for this TrainJob" in held.words
    fake.script("GET", WORKLOADS, listed(workload("u")))
    time.sleep(ASK_EVERY_S + 1)
    held = admission.held(job(suspend=True))
    assert held is not None
    assert held.is_managed  # it has begun to


def test_a_cluster_without_kueue_manages_none(fake: FakeApi, time: FakeTime) -> None:
    admission = Admission(api=fake.api(), namespace=NAMESPACE)
    admission.held(job(suspend=True))
    time.sleep(UNMANAGED_AFTER_S + 1)
    held = admission.held(job(suspend=True))
    assert held is not None
    assert not held.is_managed


def test_who_may_not_look_waits(fake: FakeApi, time: FakeTime) -> None:
    admission = with_kueue(fake)
    fake.script("GET", WORKLOADS, refused(403, "Forbidden"))
    admission.held(job(suspend=True))
    time.sleep(UNMANAGED_AFTER_S + 1)
    held = admission.held(job(suspend=True))
    assert held is not None
    assert held.is_managed
