"""What does an environment keep of the cluster, with rights to read it and without?"""

import dataclasses
from types import SimpleNamespace
from typing import cast

import pytest
from tests.platforms.kubernetes.clusters import answers
from tests.platforms.kubernetes.fake_api import Answer, FakeApi, fake_api, refused

from broadgauge.platforms.kubernetes.cluster_facts import FactsOfJobs, cluster_facts
from broadgauge.platforms.kubernetes.inventory import NotKnown, inventory_of
from broadgauge.platforms.kubernetes.inventory_reading import read_inventory
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.specs.errors import PlatformError

IMAGE = "registry.example/team/training@sha256:0123"


def pod(node: str, image_id: str | None = IMAGE) -> PodState:
    return PodState(
        name=f"on-{node}",
        uid=node,
        node=node,
        address=None,
        stage=PodStage.RUNNING,
        image_id=image_id,
    )


def test_versions_machines_and_image_are_those_of_the_pods() -> None:
    facts = cluster_facts(inventory_of(answers("vpc")), [pod("worker-1"), pod("worker-2")])
    assert facts == {
        "kubernetes": "v1.30.7",
        "openshift": "4.17.12",
        "training-operator": "v1-855e096",
        "multus": None,
        "gpu-operator": "v24.9.0",
        "instance types": "gx3d-160x1792x8h100 x 2",
        "zones": "us-east-3 x 2",
        "GPU driver": "550.127.08",
        "image": IMAGE,
    }


def test_what_may_not_be_read_is_none_and_what_is_not_there_has_no_key() -> None:
    facts = cluster_facts(inventory_of(answers("forbidden")), [pod("worker-1")])
    assert facts["kubernetes"] == "v1.33.1"
    for name in ("instance types", "zones", "GPU driver", "training-operator"):
        assert facts[name] is None
    assert "openshift" not in facts
    assert "jobset" not in facts


def test_an_openshift_whose_version_may_not_be_read_is_one() -> None:
    found = inventory_of(answers("vpc"))
    hidden = dataclasses.replace(found, openshift=NotKnown("you may not", may_be_there=True))
    assert cluster_facts(hidden, [])["openshift"] is None


def test_pods_of_two_images_and_of_none_that_is_known() -> None:
    found = inventory_of(answers("vpc"))
    both = [pod("worker-1", "a@sha256:1"), pod("worker-2", "a@sha256:2")]
    assert cluster_facts(found, both)["image"] == "a@sha256:1, a@sha256:2"
    assert cluster_facts(found, [pod("worker-1", None)])["image"] is None


def job(fake: FakeApi, name: str = "job a") -> RunningJob:
    """As far as its facts are asked for."""
    place = SimpleNamespace(namespace="training")
    found = SimpleNamespace(
        name=name, api=fake.api(), place=place, pods=lambda: {0: pod("worker-1")}
    )
    return cast("RunningJob", found)


def test_they_are_read_once_for_a_job_and_again_after_an_outage() -> None:
    facts = FactsOfJobs()
    assert facts.of(None) == {}
    with fake_api() as fake:
        fake.script("GET", "/apis", refused(503, "ServiceUnavailable"), Answer(body={"groups": []}))
        fake.script("GET", "/version", Answer(body={"gitVersion": "v1.34.4"}))
        for path in ("/api/v1/nodes", "/apis/apps/v1/deployments"):
            fake.script("GET", path, refused(403, "Forbidden"))
        assert facts.of(job(fake)) == {"kubernetes": None}
        first = facts.of(job(fake))
        assert first["kubernetes"] == "v1.34.4"
        assert first["instance types"] is None
        num_asked = len(fake.asked)
        assert num_asked < 10
        assert facts.of(job(fake)) == first
        assert len(fake.asked) == num_asked
        facts.of(job(fake, "job b"))
        assert len(fake.asked) > num_asked


def test_one_launch_cannot_change_what_the_next_is_told() -> None:
    facts = FactsOfJobs()
    with fake_api() as fake:
        fake.script("GET", "/apis", Answer(body={"groups": []}))
        fake.script("GET", "/version", Answer(body={"gitVersion": "v1.34.4"}))
        facts.of(job(fake))["kubernetes"] = "changed"
        assert facts.of(job(fake))["kubernetes"] == "v1.34.4"


def test_an_answer_that_is_not_understood_is_unknown_and_the_rest_goes_on(fake: FakeApi) -> None:
    fake.script("GET", "/apis", Answer(body={"groups": [{"name": "k8s.cni.cncf.io"}, 7]}))
    fake.script("GET", "/version", Answer(body={"gitVersion": ["v1"]}))
    fake.script("GET", "/api/v1/nodes", Answer(body={"items": None}))
    found = read_inventory(fake.api(), "training")
    assert isinstance(found.version, NotKnown)
    assert isinstance(found.nodes, NotKnown)
    assert found.nodes.may_be_there
    assert found.operators == {"multus": None}


def test_a_login_page_is_no_cluster(fake: FakeApi) -> None:
    fake.script("GET", "/apis", Answer(body=b"<html>\x1b[31mlog in</html>"))
    with pytest.raises(PlatformError, match="is no API server") as caught:
        read_inventory(fake.api(), "training")
    assert caught.value.message.isprintable()
