"""Is the kind of job one that the cluster has, and is it said which, and why?"""

import re

import pytest
from tests.platforms.kubernetes.fake_api import Answer, FakeApi, refused

from broadgauge.platforms.kubernetes.job_states import (
    RESOURCES,
    choice_words,
    choose_kind,
    has_ended,
    served_as,
    trouble_of,
)
from broadgauge.platforms.kubernetes.resources import JOBS, WORKLOADS
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.kubernetes.settings import JobKind


def serve(fake: FakeApi, *kinds: JobKind) -> None:
    for kind in kinds:
        resource = RESOURCES[kind]
        body = {"resources": [{"name": resource.plural}, {"name": f"{resource.plural}/status"}]}
        fake.script("GET", f"/apis/{resource.group}/{resource.version}", Answer(body=body))


@pytest.mark.parametrize(
    ("served", "chosen"),
    [
        (("job",), "job"),
        (("job", "pytorchjob"), "pytorchjob"),
        (("job", "trainjob"), "trainjob"),
        (("job", "pytorchjob", "trainjob"), "trainjob"),
    ],
)
def test_the_operators_kind_goes_before_a_plain_job(
    fake: FakeApi, served: tuple[JobKind, ...], chosen: JobKind
) -> None:
    serve(fake, *served)
    assert choose_kind(fake.api(), "auto") == chosen
    assert all(choose_kind(fake.api(), kind) == kind for kind in served)


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (None, "this cluster has no pytorchjobs.kubeflow.org"),
        (["v2"], "of version v1: kubeflow.org is there in v2"),
        ([], "of version v1: kubeflow.org is there in no version"),
    ],
)
def test_a_kind_that_is_not_there_is_said_with_what_is(
    fake: FakeApi, versions: list[str] | None, words: str
) -> None:
    serve(fake, "job")
    if versions is not None:
        group = {"versions": [{"version": version} for version in versions]}
        fake.script("GET", "/apis/kubeflow.org", Answer(body=group))
    with pytest.raises(PlatformError, match=re.escape(words)) as caught:
        choose_kind(fake.api(), "pytorchjob")
    assert "kubernetes.job=job" in str(caught.value.hint)


def test_what_was_chosen_is_said_with_the_reason_and_how_to_choose_otherwise() -> None:
    assert choice_words("job", "job") == "as a Job"
    assert choice_words("trainjob", "auto") == (
        "as a TrainJob, since it has trainjobs.trainer.kubeflow.org; `--set kubernetes.job=…` "
        "takes another (pytorchjob, job)"
    )
    assert "every cluster has" in choice_words("job", "auto")


def test_a_kind_is_found_in_the_version_that_is_served(fake: FakeApi) -> None:
    group = {"versions": [{"version": "v1beta2"}]}
    fake.script("GET", "/apis/kueue.x-k8s.io", Answer(body=group))
    kinds = {"resources": [{"name": "workloads"}]}
    fake.script("GET", "/apis/kueue.x-k8s.io/v1beta2", Answer(body=kinds))
    found = served_as(fake.api(), WORKLOADS)
    assert found is not None
    assert found.version == "v1beta2"
    fake.script("GET", "/apis/kueue.x-k8s.io", refused(404, "NotFound"))
    assert served_as(fake.api(), WORKLOADS) is None
    serve(fake, "job")
    assert served_as(fake.api(), JOBS) is JOBS


def test_what_an_operator_says_is_wrong_is_told() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "Deadline", "message": "too late"}
    assert trouble_of({"status": {"conditions": [failed]}}) == "Deadline: too late"
    assert trouble_of({"status": {"conditions": [failed | {"status": "False"}]}}) is None
    assert trouble_of({}) is None


@pytest.mark.parametrize(
    ("conditions", "is_over"),
    [
        ([], False),
        ([("Complete", "True")], True),
        ([("Running", "False"), ("Succeeded", "True")], True),
        ([("Failed", "True")], True),
        ([("Failed", "False")], False),
        ([("Suspended", "True")], False),
        ([("Restarting", "True")], False),
        ([("FailureTarget", "True")], False),  # its pods are being ended
    ],
)
def test_a_job_has_ended_where_its_status_says_that_no_pod_comes(
    conditions: list[tuple[str, str]], is_over: bool
) -> None:
    found = [{"type": kind, "status": status} for kind, status in conditions]
    assert has_ended({"status": {"conditions": found}}) is is_over
    assert not has_ended({"metadata": {"name": "demo"}})  # its status is yet to come
