"""Does a real API server say before anything is created what it would refuse?"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube import Client
from lightkube.models.core_v1 import ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, ResourceQuota, Secret
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.crds import apply_crds, delete_crds
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.cluster.rights import give_rights
from tests.kubernetes.cluster.waiting import wait_until
from tests.manifests.requests import KINDS, VNIC, experiment_of, request_of

from broadgauge.manifests.labels import JobKind
from broadgauge.manifests.rbac import facts_file, rights_file
from broadgauge.manifests.rendering import render_job
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.checks import check_before
from broadgauge.platforms.kubernetes.owned import create_all, delete_all
from broadgauge.specs.errors import InputError, PlatformError

pytestmark = [pytest.mark.kubernetes]
Connect = Callable[[str], Api]
POD = [{"name": "pod", "kubernetes": "pod"}]
NETWORKS = [*POD, {"name": "vnic", "nics_per_node": 2, "kubernetes": VNIC}]


@pytest.fixture
def connect(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """As a user of the command does."""
    opened: list[Api] = []

    def as_user(name: str) -> Api:
        monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig(name)))
        opened.append(Api.connect(None))
        return opened[-1]

    yield as_user
    for api in opened:
        api.client.close()


def request(namespace: str, kind: JobKind = "job", **settings: Any) -> JobRequest:
    return request_of(experiment_of(namespace=namespace, **settings), kind)


def all_objects(asked: JobRequest) -> list[dict[str, Any]]:
    return list(render_job(asked).objects)


def check(api: Api, asked: JobRequest) -> list[str]:
    said: list[str] = []
    namespace = asked.settings.namespace
    assert namespace is not None
    check_before(api, asked, namespace, all_objects(asked), said.append)
    return said


def refusal_of(api: Api, asked: JobRequest) -> str:
    with pytest.raises(PlatformError) as caught:
        check(api, asked)
    return str(caught.value)


def stored(cluster: Client, namespace: str) -> list[str]:
    found = [
        *cluster.list(ConfigMap, namespace=namespace),
        *cluster.list(Secret, namespace=namespace),
    ]
    names = [str(each.metadata and each.metadata.name) for each in found]
    return [name for name in names if name != "kube-root-ca.crt"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_rendered_passes_and_nothing_is_stored(
    connect: Connect,
    control_plane: ControlPlane,
    operators: Operators,
    namespace: str,
    kind: JobKind,
) -> None:
    del operators
    assert check(connect("admin"), request(namespace, kind, networks=NETWORKS)) == []
    with control_plane.client() as cluster:
        assert stored(cluster, namespace) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_role_is_enough_for_the_checks_and_for_what_is_made(
    connect: Connect,
    control_plane: ControlPlane,
    operators: Operators,
    namespace: str,
    kind: JobKind,
) -> None:
    del operators
    made = [{"name": "data", "mount": "/data", "size_bytes": "1 GiB"}]
    asked = request(namespace, kind, networks=NETWORKS, volumes=made)
    user = f"system:serviceaccount:{namespace}:{asked.name}-runner"
    control_plane.add_user(user)
    with control_plane.http() as http:
        give_rights(http, rights_file(asked).objects, user)
    api = connect(user)
    said = check(api, asked)
    assert said == [
        "its pods are not checked: you may not create pods, which a run does not need",
        f"not checked, since you may not read it: namespace {namespace}",
    ]
    create_all(api, namespace, all_objects(asked), said.append)
    assert delete_all(api, namespace, asked.run, said.append)
    assert len(said) == 2, said


def test_who_may_nothing_is_told_every_right_that_is_missing(
    connect: Connect, control_plane: ControlPlane, namespace: str, crds: list[str]
) -> None:
    del crds
    control_plane.add_user("nobody-yet")
    text = refusal_of(connect("nobody-yet"), request(namespace))
    assert "you may not create, delete, get, list, patch configmaps in namespace" in text
    for words in ("secrets", "configmaps", "pods/log", "jobs.batch", "render EXPERIMENT --rbac"):
        assert words in text, text


def test_one_right_that_was_taken_away_is_the_one_that_is_named(
    connect: Connect, control_plane: ControlPlane, namespace: str
) -> None:
    """Each right of the Role is asked for: without it the checks refuse."""
    asked = request(namespace)
    user = f"system:serviceaccount:{namespace}:{asked.name}-runner"
    control_plane.add_user(user)
    account, role, binding = rights_file(asked).objects
    rule = next(each for each in role["rules"] if each["resources"] == ["pods"])
    rule["verbs"] = [verb for verb in rule["verbs"] if verb != "watch"]
    with control_plane.http() as http:
        give_rights(http, (account, role, binding), user)
    text = refusal_of(connect(user), asked)
    assert text.startswith(f"your rights: you may not watch pods in namespace {namespace}")


def test_all_that_is_wrong_is_said_at_once(
    connect: Connect, control_plane: ControlPlane, namespace: str, crds: list[str]
) -> None:
    del crds
    quota = ResourceQuota(
        metadata=ObjectMeta(name="small", namespace=namespace),
        spec=ResourceQuotaSpec(hard={"count/configmaps": "1"}),
    )
    with control_plane.client() as cluster:
        cluster.create(quota)
        existing = {"attachment": "existing", "definitions": ["not-there"]}
        asked = request(
            namespace,
            networks=[*POD, {"name": "roce", "kubernetes": existing}],
            volumes=[{"name": "data", "mount": "/data"}],
            priority_class="not-there",
        )
        text = refusal_of(connect("admin"), asked)
        for words in (
            "there is no NetworkAttachmentDefinition not-there",
            "there is no PersistentVolumeClaim data",
            "there is no PriorityClass not-there",
        ):
            assert words in text, text
        assert stored(cluster, namespace) == []


def test_a_namespace_that_is_not_there_is_said_before_anything_else(connect: Connect) -> None:
    text = refusal_of(connect("admin"), request("nowhere"))
    assert text.startswith("kubernetes.namespace: there is no namespace nowhere")


def test_an_operator_that_does_not_answer_is_said(
    connect: Connect, operators: Operators, namespace: str
) -> None:
    operators.end("training-operator")
    try:
        text = refusal_of(connect("admin"), request(namespace, "pytorchjob"))
    finally:
        operators.start("training-operator")
    assert "PyTorchJob demo" in text
    assert "webhook" in text


def test_a_kind_of_job_that_is_not_installed_is_refused(
    connect: Connect, control_plane: ControlPlane, namespace: str, crds: list[str]
) -> None:
    """Without Volcano's kinds: asked for by name, refused before anything is there."""
    api = connect("admin")
    queue = {"queue": {"volcano": "training"}}
    of_volcano = [name for name in crds if name.endswith("volcano.sh")]
    delete_crds(control_plane, of_volcano)
    try:
        text = refusal_of(api, request(namespace, **queue))
    finally:
        apply_crds(control_plane, ["volcano"])
    assert "this cluster has no" in text
    assert "scheduling.volcano.sh" in text


def test_an_operator_of_another_version_is_told_from_none(
    connect: Connect, control_plane: ControlPlane, namespace: str, crds: list[str]
) -> None:
    """As one that is too old: its group is served, in another version. Of Volcano, which nobody
    watches here."""
    api, path = connect("admin"), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = "podgroups.scheduling.volcano.sh"
    of_volcano = [each for each in crds if each.endswith("volcano.sh")]
    with control_plane.http() as http:
        kept = http.get(f"{path}/{name}").raise_for_status().json()
        older = {key: kept[key] for key in ("apiVersion", "kind", "spec")}
        annotations = kept["metadata"].get("annotations", {})
        older["metadata"] = {"name": name, "annotations": annotations}
        older["spec"]["versions"][0]["name"] = "v1alpha1"
        delete_crds(control_plane, of_volcano)
        try:
            http.post(path, json=older).raise_for_status()
            wait_until(
                lambda: http.get("/apis/scheduling.volcano.sh/v1alpha1").is_success,
                limit_s=60,
                what="the older version to be served",
            )
            text = refusal_of(api, request(namespace, queue={"volcano": "training"}))
        finally:
            delete_crds(control_plane, [name])
            apply_crds(control_plane, ["volcano"])
    assert "podgroups.scheduling.volcano.sh of version v1beta1" in text
    assert "scheduling.volcano.sh is there in v1alpha1" in text


def test_the_cluster_role_of_facts_lets_namespaces_be_read(
    connect: Connect, control_plane: ControlPlane, namespace: str
) -> None:
    asked = request(namespace)
    user = f"system:serviceaccount:{namespace}:{asked.name}-runner"
    control_plane.add_user(user)
    with control_plane.http() as http:
        give_rights(http, (*rights_file(asked).objects, *facts_file(asked).objects), user)
    assert check(connect(user), asked) == [
        "its pods are not checked: you may not create pods, which a run does not need"
    ]


def test_a_kubeconfig_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(InputError, match="kubeconfig"):
        Api.connect(None)
