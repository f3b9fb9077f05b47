"""Does a job, however it goes, take all along that the run has made beside it, and nothing more?"""

from typing import Any

import pytest
from tests.manifests.requests import KINDS, VNIC, experiment_of, request_of
from tests.platforms.kubernetes.fake_api import CONFIG_MAPS, NAMESPACE, Answer, FakeApi, refused

from broadgauge.manifests.labels import JobKind
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.rendering import render_job
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.owner_references import give_to_job, owned_by, parted

VOLUME = {"name": "data", "mount": "/data", "size_bytes": "1 GiB"}
PROGRAM = f"{CONFIG_MAPS}/demo-program"


def request(kind: JobKind) -> JobRequest:
    networks = [{"name": "vnic", "kubernetes": VNIC}]
    prepare = {"volume": "data", "model": "me/tiny"}
    experiment = experiment_of(
        namespace=NAMESPACE, networks=networks, volumes=[VOLUME], prepare=prepare
    )
    return request_of(experiment, kind, files={"train.py": b"print()\n"})


def there(body: dict[str, Any]) -> dict[str, Any]:
    """As it is once the server has it."""
    return body | {"metadata": body["metadata"] | {"uid": f"uid of {body['metadata']['name']}"}}


@pytest.mark.parametrize("kind", KINDS)
def test_all_but_claims_runtimes_and_the_job_is_the_programs(kind: JobKind) -> None:
    asked = request(kind)
    first, others = parted(asked, render_job(asked).objects)
    assert first["metadata"]["name"] == "demo-program"
    preparing = prepare_file(asked)
    assert preparing is not None
    owned = owned_by(there(first), asked, [*preparing.objects, *others])
    free = {each["kind"] for each in owned if "ownerReferences" not in each["metadata"]}
    job = others[-1]["kind"]
    assert free == {"PersistentVolumeClaim", job} | (
        {"TrainingRuntime"} if kind == "trainjob" else set()
    )
    about = {"apiVersion": "v1", "kind": "ConfigMap", "name": "demo-program"}
    references = [
        each["metadata"]["ownerReferences"]
        for each in owned
        if "ownerReferences" in each["metadata"]
    ]
    assert all(each == [about | {"uid": "uid of demo-program"}] for each in references)
    assert {"demo-prepare", "demo-orders"} <= {
        each["metadata"]["name"] for each in owned if "ownerReferences" in each["metadata"]
    }


@pytest.mark.parametrize("kind", KINDS)
def test_program_is_the_jobs(fake: FakeApi, kind: JobKind) -> None:
    asked = request(kind)
    first, others = parted(asked, render_job(asked).objects)
    fake.script("PATCH", PROGRAM, Answer(body=first))
    made, said = [there(each) for each in others], list[str]()
    give_to_job(fake.api(), NAMESPACE, asked, owner=first, made=made, say=said.append)
    (patched,) = fake.asked
    (reference,) = patched.body["metadata"]["ownerReferences"]
    assert reference["uid"] == "uid of demo"
    assert (reference["apiVersion"], reference["kind"]) == (
        others[-1]["apiVersion"],
        others[-1]["kind"],
    )
    assert said == []


def test_a_program_that_can_not_be_given_away_is_said_and_no_error(fake: FakeApi) -> None:
    asked = request("job")
    first, others = parted(asked, render_job(asked).objects)
    fake.script("PATCH", PROGRAM, refused(403, "Forbidden", "no owners here"))
    made, said = [there(each) for each in others], list[str]()
    give_to_job(fake.api(), NAMESPACE, asked, owner=first, made=made, say=said.append)
    assert said == [
        "what is beside the job would outlive it, until `broadgauge cleanup`: no owners here"
    ]
