"""Does a job, however it goes, take all along that the run has made beside it, and nothing more?"""

from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import CONFIG_MAPS, NAMESPACE, Answer, FakeApi, refused
from tests.platforms.kubernetes.test_ownership import place_of

from broadgauge.platforms.kubernetes.job_states import RESOURCES
from broadgauge.platforms.kubernetes.owner_references import give_to_job, owned_by, parted
from broadgauge.platforms.kubernetes.resources import (
    ATTACHMENTS,
    CLAIMS,
    SECRETS,
    SERVICES,
    TRAINING_RUNTIMES,
    Resource,
)
from broadgauge.platforms.kubernetes.resources import CONFIG_MAPS as CONFIG_MAP
from broadgauge.specs.kubernetes.settings import JobKind

KINDS: tuple[JobKind, ...] = ("job", "pytorchjob", "trainjob")
PROGRAM = f"{CONFIG_MAPS}/r-program"


def body(resource: Resource, name: str) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
    }


def objects(kind: JobKind) -> list[dict[str, Any]]:
    """What a run of this kind of job makes, in its order."""
    runtime = [body(TRAINING_RUNTIMES, "r")] if kind == "trainjob" else []
    return [
        body(CLAIMS, "data"),
        body(CONFIG_MAP, "r-program"),
        body(CONFIG_MAP, "r-orders"),
        body(SECRETS, "r-secrets"),
        body(ATTACHMENTS, "vnic"),
        body(SERVICES, "r"),
        *runtime,
        body(RESOURCES[kind], "r"),
    ]


def there(item: dict[str, Any]) -> dict[str, Any]:
    """As it is once the server has it."""
    return item | {"metadata": item["metadata"] | {"uid": f"uid of {item['metadata']['name']}"}}


@pytest.mark.parametrize("kind", KINDS)
def test_all_but_claims_runtimes_and_the_job_is_the_programs(kind: JobKind) -> None:
    asked = place_of(kind)
    first, others = parted(asked, objects(kind))
    assert first["metadata"]["name"] == "r-program"
    found = owned_by(there(first), asked, others)
    references = {
        (each["kind"], each["metadata"]["name"]): each["metadata"].get("ownerReferences")
        for each in found
    }
    free = {(CLAIMS.kind, "data"), (RESOURCES[kind].kind, "r"), (TRAINING_RUNTIMES.kind, "r")}
    of_program = body(CONFIG_MAP, "")
    del of_program["metadata"]
    of_program |= {"name": "r-program", "uid": "uid of r-program"}
    assert {key for key, each in references.items() if each is None} == free & set(references)
    assert all(each == [of_program] for each in references.values() if each is not None)


@pytest.mark.parametrize("kind", KINDS)
def test_program_is_the_jobs(fake: FakeApi, kind: JobKind) -> None:
    asked = place_of(kind)
    first, others = parted(asked, objects(kind))
    fake.script("PATCH", PROGRAM, Answer(body=first))
    made, said = [there(each) for each in others], list[str]()
    give_to_job(fake.api(), NAMESPACE, asked, owner=first, made=made, say=said.append)
    (patched,) = fake.asked
    (reference,) = patched.body["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": RESOURCES[kind].api_version,
        "kind": RESOURCES[kind].kind,
        "name": "r",
        "uid": "uid of r",
    }
    assert said == []


def test_a_program_that_can_not_be_given_away_is_said_and_no_error(fake: FakeApi) -> None:
    asked = place_of()
    first, others = parted(asked, objects("job"))
    fake.script("PATCH", PROGRAM, refused(403, "Forbidden", "no owners here"))
    made, said = [there(each) for each in others], list[str]()
    give_to_job(fake.api(), NAMESPACE, asked, owner=first, made=made, say=said.append)
    assert said == [
        "what is beside the job would outlive it, until `broadgauge cleanup`: no owners here"
    ]
