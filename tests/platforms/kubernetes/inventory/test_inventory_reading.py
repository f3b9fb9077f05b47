"""Is a cluster's inventory read with whatever rights there are?"""

from collections.abc import Iterator

import pytest
from tests.platforms.kubernetes.fake_api import Answer, FakeApi, fake_api, listed, refused

from broadgauge.platforms.kubernetes.inventory.cluster_inventory import NotKnown
from broadgauge.platforms.kubernetes.inventory.inventory_reading import read_inventory
from broadgauge.platforms.kubernetes.inventory.inventory_words import inventory_words
from broadgauge.specs.errors import PlatformError

DEFINITIONS = "network-attachment-definitions"
NETWORKS = "/apis/k8s.cni.cncf.io/v1"
DEFINITION = {"metadata": {"name": "a", "namespace": "training"}, "spec": {}}


def own_path(namespace: str) -> str:
    return f"{NETWORKS}/namespaces/{namespace}/{DEFINITIONS}"


@pytest.fixture
def cluster() -> Iterator[FakeApi]:
    """That has attached networks and one operator, and nothing else."""
    with fake_api() as started:
        names = ("k8s.cni.cncf.io", "nvidia.com")
        groups = {"groups": [{"name": name} for name in names]}
        started.script("GET", "/apis", Answer(body=groups))
        started.script("GET", "/version", Answer(body={"gitVersion": "v1.36.1"}))
        started.script("GET", "/apis/apps/v1/deployments", refused(403, "Forbidden"))
        started.script("GET", "/api/v1/nodes", listed({"metadata": {"name": "node-a"}}))
        started.script("GET", f"{NETWORKS}/{DEFINITIONS}", listed(DEFINITION))
        started.script("GET", "/api/v1/namespaces/training", refused(403, "Forbidden"))
        yield started


def test_all_of_it_is_read_and_nothing_is_written(cluster: FakeApi) -> None:
    found = read_inventory(cluster.api(), "training")
    assert [each.name for each in found.known_nodes] == ["node-a"]
    assert [each.name for each in found.known_definitions] == ["a"]
    assert found.operators == {"gpu-operator": None}
    assert found.has_namespace
    assert not found.may_be_openshift
    assert {each.method for each in cluster.asked} == {"GET"}
    assert len(cluster.asked) <= 8
    assert list(inventory_words(found)) == [
        "Kubernetes: v1.36.1",
        "operators: gpu-operator (version unknown)",
        "1 node: instance type unknown, no GPU",
    ]


def test_where_all_namespaces_may_not_be_read_this_one_may(cluster: FakeApi) -> None:
    cluster.script("GET", f"{NETWORKS}/{DEFINITIONS}", refused(403, "Forbidden"))
    shared = {"metadata": {"name": "b", "namespace": "default"}, "spec": {}}
    answers = {"training": listed(DEFINITION), "default": listed(shared)}
    for space, answer in answers.items():
        cluster.script("GET", own_path(space), answer)
    found = read_inventory(cluster.api(), "training")
    assert [each.name for each in found.known_definitions] == ["a", "b"]
    assert found.hidden_definitions == "those of other namespaces may not be listed"
    cluster.script("GET", own_path("default"), refused(403, "Forbidden"))
    found = read_inventory(cluster.api(), "training")
    assert [each.name for each in found.known_definitions] == ["a"]
    assert found.hidden_definitions == "those of default and other namespaces may not be listed"
    cluster.script("GET", own_path("training"), refused(403, "Forbidden"))
    definitions = read_inventory(cluster.api(), "training").definitions
    assert definitions == NotKnown("you may not list network definitions", may_be_there=True)


def test_who_may_read_nothing_gets_what_is_known(cluster: FakeApi) -> None:
    for path in ("/apis", "/version", "/api/v1/nodes", f"{NETWORKS}/{DEFINITIONS}"):
        cluster.script("GET", path, refused(403, "Forbidden"))
    found = read_inventory(cluster.api(), "training")
    assert (found.known_nodes, found.known_definitions) == ((), ())
    assert "operators: unknown, you may not read the API's groups" in inventory_words(found)


def test_a_namespace_that_is_not_there_is_known(cluster: FakeApi) -> None:
    cluster.script("GET", "/api/v1/namespaces/training", refused(404, "NotFound"))
    found = read_inventory(cluster.api(), "training")
    assert not found.has_namespace
    assert found.namespaces == ()  # they may not be listed
    spaces = (listed({"metadata": {"name": "default"}}, {"metadata": {"name": "trainings"}}),)
    cluster.script("GET", "/api/v1/namespaces", *spaces)
    assert read_inventory(cluster.api(), "training").namespaces == ("default", "trainings")


def test_other_namespaces_are_not_listed_where_the_one_that_is_meant_may_be_there(
    cluster: FakeApi,
) -> None:
    read_inventory(cluster.api(), "training")
    assert cluster.count("GET", "/api/v1/namespaces") == 0


@pytest.mark.parametrize("status", [429, 500])
def test_a_server_that_fails_at_one_question_is_asked_the_others(
    cluster: FakeApi, status: int
) -> None:
    cluster.script("GET", f"{NETWORKS}/{DEFINITIONS}", refused(status, "InternalError"))
    found = read_inventory(cluster.api(), "training")
    assert found.known_nodes
    assert isinstance(found.definitions, NotKnown)
    assert found.definitions.may_be_there
    assert f"list network definitions ({status}: as the test has it)" in found.definitions.why


def test_a_page_in_the_place_of_one_answer_is_said(cluster: FakeApi) -> None:
    cluster.script("GET", "/api/v1/nodes", Answer(body=b"<html>\nlog in"))
    found = read_inventory(cluster.api(), "training").nodes
    assert isinstance(found, NotKnown)
    assert "the answer is not understood (no JSON: <html> log in)" in found.why


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(body=b"<html>"), "is no API server"),
        (refused(401, "Unauthorized"), "your credentials are not accepted"),
    ],
)
def test_what_is_no_server_of_yours_is_an_error(
    cluster: FakeApi, answer: Answer, words: str
) -> None:
    cluster.script("GET", "/apis", answer)
    with pytest.raises(PlatformError, match=words):
        read_inventory(cluster.api(), "training")
