"""Proves which objects of a run are made, and what is there already is left alone or named."""

from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import NAMESPACE, Answer, Asked, FakeApi
from tests.running.rendering.runs import ORDERS, small_run

from broadgauge.manifests.names import JOB, RUN
from broadgauge.manifests.run_job import RunJob, run_secret
from broadgauge.platforms.kubernetes.making import RunObjects
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.secrets.values import SecretText

DEFINITIONS = f"/apis/k8s.cni.cncf.io/v1/namespaces/{NAMESPACE}/network-attachment-definitions"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
NIC = (
    "networks.lan.kubernetes={attachment: host-device, devices: [ens13], definitions: mine, "
    "ipam: {kind: whereabouts, ranges: 10.20.0.0/24}}"
)
FILLED = (
    "kubernetes.volumes=[{name: data, mount: /data, size_bytes: 1 GiB}]",
    "kubernetes.prepare={volume: data, model: gpt2}",
)


def objects(run: RunJob) -> RunObjects:
    values = {name: SecretText("of the user") for name in run.looked_up}
    return RunObjects.of(run, ORDERS, run_secret(run, SecretText("of the run"), values))


def create(fake: FakeApi, run: RunJob) -> list[dict[str, Any]]:
    """What was made, in its order."""

    def made(asked: Asked) -> Answer:
        about = {**asked.body["metadata"], "uid": asked.body["metadata"]["name"]}
        return Answer(status=201, body={**asked.body, "metadata": about})

    collections = ("configmaps", "secrets", "services", "persistentvolumeclaims")
    for path in (*(f"{CORE}/{each}" for each in collections), JOBS, DEFINITIONS):
        fake.script("POST", path, made)
    program = f"{CORE}/configmaps/{run.name}-program"
    fake.script("PATCH", program, Answer(body={"metadata": {"name": f"{run.name}-program"}}))
    api, found = fake.api(), objects(run)
    owner = found.claim(api, NAMESPACE, print)
    found.create(api, NAMESPACE, owner, print)
    return [each.body for each in fake.asked if each.method == "POST"]


def test_what_owns_the_rest_is_the_first_and_the_job_the_last(
    fake: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    run = small_run(tmp_path)
    made = create(fake, run)
    assert [each["metadata"]["name"] for each in (made[0], made[1], made[-1])] == [
        *(f"{run.name}-program", f"{run.name}-secrets", run.name)
    ]
    owners = [each["metadata"].get("ownerReferences", [{}])[0].get("name") for each in made]
    assert owners == [None, *[f"{run.name}-program"] * (len(made) - 2), None]


def definition(config: str) -> Answer:
    return Answer(body={"metadata": {"name": "mine"}, "spec": {"config": config}})


def test_a_definition_of_the_users_name_is_taken_where_it_is_the_same(
    fake: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    run = small_run(tmp_path, NIC)
    fake.script("GET", f"{DEFINITIONS}/mine", definition(definition_of(run)["spec"]["config"]))
    made = create(fake, run)
    assert "NetworkAttachmentDefinition" not in {each["kind"] for each in made}


def definition_of(run: RunJob) -> dict[str, Any]:
    """The one that is not the run's alone."""
    (found,) = (
        each for each in objects(run).lasting if each["kind"] == "NetworkAttachmentDefinition"
    )
    return found


def test_a_definition_of_the_users_name_outlives_the_run_that_made_it(
    fake: FakeApi, tmp_path: Path
) -> None:
    """Pods of another run may be about to use it."""
    (tmp_path / "train.py").touch()
    run = small_run(tmp_path, NIC)
    made = create(fake, run)
    assert made[0]["spec"] == definition_of(run)["spec"]
    assert made[0]["metadata"]["name"] == "mine"
    assert not {RUN, JOB} & set(made[0]["metadata"]["labels"])
    assert "ownerReferences" not in made[0]["metadata"]


def test_a_definition_of_the_runs_own_name_goes_with_it(fake: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    made = create(fake, small_run(tmp_path, NIC.replace("definitions: mine, ", "")))
    (own,) = (each for each in made if each["kind"] == "NetworkAttachmentDefinition")
    assert {RUN, JOB} <= set(own["metadata"]["labels"])
    assert own["metadata"]["ownerReferences"]


def test_another_definition_of_that_name_ends_the_run_before_anything_is_made(
    fake: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    run = small_run(tmp_path, NIC)
    fake.script("GET", f"{DEFINITIONS}/mine", definition("{}"))
    with pytest.raises(PlatformError, match="NetworkAttachmentDefinition mine is there") as found:
        create(fake, run)
    assert "attachment: existing" in str(found.value.hint)
    assert not [each for each in fake.asked if each.method == "POST"]


def test_a_volume_that_could_not_be_filled_is_named(fake: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    run = small_run(tmp_path, *FILLED)
    (maker,) = (each for each in objects(run).lasting if each["kind"] == "Job")
    name = maker["metadata"]["name"]
    failed = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "no"}
    body = {"metadata": {"name": name}, "status": {"conditions": [failed]}}
    fake.script("GET", f"{JOBS}/{name}", Answer(body=body))
    with pytest.raises(PlatformError, match=f"Job {name}, which fills a volume") as found:
        create(fake, run)
    assert f"kubectl logs job/{name}" in str(found.value.hint)
