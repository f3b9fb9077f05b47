"""What does an environment keep of the cluster, with the rights to read it and without?"""

from typing import Any

import httpx2
import pytest
from tests.platforms.kubernetes.fake_api import NAMESPACE, Answer, Asked, FakeApi, listed, refused

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.cluster_facts import cluster_facts
from broadgauge.platforms.kubernetes.operators import OPERATORS
from broadgauge.platforms.kubernetes.pod_states import PodState, pod_state

IMAGE = "registry.example/team/training@sha256:0123"
NODES = "/api/v1/nodes"
DEPLOYMENTS = "/apis/apps/v1/deployments"
OPENSHIFT = "/apis/config.openshift.io/v1/clusterversions/version"
OF_NODES = ("instance types", "zones", "GPU driver")


def a_pod(name: str, node: str | None = "node-a", image_id: str | None = IMAGE) -> PodState:
    """As the API server tells of one that runs, the leader's container first."""
    containers = [
        {"name": "leader", "imageID": "registry.example/other@sha256:9"},
        {"name": "pytorch", "imageID": image_id},
    ]
    return pod_state(
        {
            "metadata": {"name": name},
            "spec": {"nodeName": node},
            "status": {"phase": "Running", "containerStatuses": containers},
        }
    )


def a_node(name: str, gpus: int = 8, **labels: str) -> Answer:
    known = {
        "node.kubernetes.io/instance-type": "gx3d-160x1792x8h100",
        "topology.kubernetes.io/zone": "us-east-3",
        "nvidia.com/cuda.driver-version.full": "550.127.08",
    }
    capacity = {"cpu": "160", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    metadata = {"name": name, "labels": {**known, **labels}}
    return Answer(body={"metadata": metadata, "status": {"capacity": capacity}})


def a_deployment(name: str, image: str, **labels: str) -> dict[str, Any]:
    pods = {"spec": {"containers": [{"image": image}]}}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"template": pods}}


def groups(*names: str) -> Answer:
    return Answer(body={"groups": [{"name": name} for name in names]})


def deployed(*found: dict[str, Any]) -> Any:
    """As a server that looks at the field selector."""

    def answer(asked: Asked) -> Answer:
        wanted = asked.query["fieldSelector"].removeprefix("metadata.name=")
        return listed(*(each for each in found if each["metadata"]["name"] == wanted))

    return answer


@pytest.fixture
def open_cluster(fake: FakeApi) -> FakeApi:
    """Two nodes of eight GPUs, all of it readable."""
    fake.script("GET", "/version", Answer(body={"gitVersion": "v1.30.7"}))
    fake.script("GET", "/apis", groups("apps", "batch"))
    for name in ("node-a", "node-b"):
        fake.script("GET", f"{NODES}/{name}", a_node(name))
    return fake


def test_version_machines_and_image_are_those_of_the_pods(open_cluster: FakeApi) -> None:
    pods = [a_pod("p-0"), a_pod("p-1", "node-b"), a_pod("p-2", "node-b")]
    assert cluster_facts(open_cluster.api(), pods) == {
        "kubernetes": "v1.30.7",
        "instance types": "gx3d-160x1792x8h100 × 2",
        "zones": "us-east-3 × 2",
        "GPU driver": "550.127.08",
        "image": IMAGE,
    }
    assert open_cluster.count("GET", f"{NODES}/node-b") == 1
    assert open_cluster.count("GET", NODES) == 0


def test_machines_of_several_kinds_are_counted(open_cluster: FakeApi) -> None:
    other = {"node.kubernetes.io/instance-type": "a2", "topology.kubernetes.io/zone": "us-east-1"}
    open_cluster.script("GET", f"{NODES}/node-c", a_node("node-c", **other))
    pods = [a_pod(f"p-{node}", f"node-{node}") for node in "abc"]
    facts = cluster_facts(open_cluster.api(), pods)
    assert facts["instance types"] == "a2 × 1, gx3d-160x1792x8h100 × 2"
    assert facts["zones"] == "us-east-1 × 1, us-east-3 × 2"


def test_what_is_forbidden_is_unknown_and_the_rest_is_told(fake: FakeApi) -> None:
    """A user of one namespace, as most are."""
    fake.script("GET", "/version", Answer(body={"gitVersion": "v1.33.1"}))
    fake.script("GET", "/apis", groups("config.openshift.io", "kubeflow.org"))
    for path in (f"{NODES}/node-a", OPENSHIFT, DEPLOYMENTS):
        fake.script("GET", path, refused(403, "Forbidden"))
    assert cluster_facts(fake.api(), [a_pod("p-0"), a_pod("p-1", "node-b")]) == {
        "kubernetes": "v1.33.1",
        "openshift": None,
        "training-operator": None,
        **dict.fromkeys(OF_NODES),
        "image": IMAGE,
    }
    assert fake.count("GET", f"{NODES}/node-b") == 0


def test_nothing_may_be_read_at_all(fake: FakeApi) -> None:
    for path in ("/version", "/apis", f"{NODES}/node-a"):
        fake.script("GET", path, refused(403, "Forbidden"))
    facts = cluster_facts(fake.api(), [a_pod("p-0")])
    assert facts.pop("image") == IMAGE
    assert facts == dict.fromkeys(("kubernetes", "openshift", *OPERATORS, *OF_NODES))


def test_openshift_has_the_version_that_its_last_update_came_to(open_cluster: FakeApi) -> None:
    open_cluster.script("GET", "/apis", groups("config.openshift.io"))
    history = [
        {"state": "Partial", "version": "4.18.1"},
        {"state": "Completed", "version": "4.17.12"},
        {"state": "Completed", "version": "4.17.3"},
    ]
    status = {"desired": {"version": "4.18.1"}, "history": history}
    open_cluster.script("GET", OPENSHIFT, Answer(body={"status": status}))
    assert cluster_facts(open_cluster.api(), [a_pod("p-0")])["openshift"] == "4.17.12"


@pytest.mark.parametrize(
    ("found", "version"),
    [
        ([a_deployment("gpu-operator", "nvcr.io/gpu-operator:v24.9.0@sha256:1")], "v24.9.0"),
        ([a_deployment("gpu-operator", "reg.example:5000/gpu-operator@sha256:1")], None),
        (
            [a_deployment("gpu-operator", "x:1", **{"app.kubernetes.io/version": "v24.9.2"})],
            "v24.9.2",
        ),
        (
            [a_deployment("gpu-operator", "x:v2"), a_deployment("gpu-operator", "x:v1")],
            "v1, v2",
        ),
        ([a_deployment("of-somebody-else", "x:v1")], None),
    ],
    ids=("tag", "digest", "label", "two", "another-name"),
)
def test_operators_versions(
    open_cluster: FakeApi, found: list[dict[str, Any]], version: str | None
) -> None:
    open_cluster.script("GET", "/apis", groups("nvidia.com"))
    open_cluster.script("GET", DEPLOYMENTS, deployed(*found))
    facts = cluster_facts(open_cluster.api(), [a_pod("p-0")])
    assert facts["gpu-operator"] == version
    assert "kueue" not in facts


def test_a_node_without_a_label_makes_the_count_unknown(open_cluster: FakeApi) -> None:
    bare = {"metadata": {"name": "node-b"}, "status": {"capacity": {"cpu": "8"}}}
    open_cluster.script("GET", f"{NODES}/node-b", Answer(body=bare))
    facts = cluster_facts(open_cluster.api(), [a_pod("p-0"), a_pod("p-1", "node-b")])
    assert [facts[name] for name in OF_NODES] == [None, None, None]


def test_an_older_gpu_feature_discovery_tells_the_driver_in_parts(open_cluster: FakeApi) -> None:
    parts = {"major": "535", "minor": "54", "rev": "03"}
    labels = {f"nvidia.com/cuda.driver.{part}": value for part, value in parts.items()}
    labels["nvidia.com/cuda.driver-version.full"] = ""
    open_cluster.script("GET", f"{NODES}/node-a", a_node("node-a", **labels))
    assert cluster_facts(open_cluster.api(), [a_pod("p-0")])["GPU driver"] == "535.54.03"


def test_nodes_without_gpus_have_no_driver_to_be_unknown(open_cluster: FakeApi) -> None:
    open_cluster.script("GET", f"{NODES}/node-a", a_node("node-a", gpus=0))
    assert "GPU driver" not in cluster_facts(open_cluster.api(), [a_pod("p-0")])


def test_pods_of_two_images_and_one_that_is_unknown(open_cluster: FakeApi) -> None:
    api = open_cluster.api()
    two = [a_pod("p-0", image_id="a@sha256:2"), a_pod("p-1", image_id="a@sha256:1")]
    assert cluster_facts(api, two)["image"] == "a@sha256:1, a@sha256:2"
    assert cluster_facts(api, [*two, a_pod("p-2", image_id="")])["image"] is None
    assert cluster_facts(api, [])["image"] is None


def test_pods_without_a_node_say_nothing_of_machines(open_cluster: FakeApi) -> None:
    facts = cluster_facts(open_cluster.api(), [a_pod("p-0", None)])
    assert [facts[name] for name in OF_NODES] == [None, None, None]


def test_an_answer_that_is_not_understood_is_unknown_and_the_rest_goes_on(
    open_cluster: FakeApi,
) -> None:
    open_cluster.script("GET", "/version", Answer(body=b"<html>log in</html>"))
    open_cluster.script("GET", "/apis", Answer(body={"groups": [7, {"name": ["x"]}, {}]}))
    facts = cluster_facts(open_cluster.api(), [a_pod("p-0")])
    assert facts["kubernetes"] is None
    assert facts["zones"] == "us-east-3 × 1"


def test_a_server_that_is_away_is_asked_once() -> None:
    asked: list[str] = []

    def away(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        raise httpx2.ConnectError("refused")

    url = "http://away.example"
    client = httpx2.Client(base_url=url, transport=httpx2.MockTransport(away))
    facts = cluster_facts(Api(client, url, None, NAMESPACE), [a_pod("p-0")])
    assert facts.pop("image") == IMAGE
    assert set(facts.values()) == {None}
    assert asked == ["/version"]
