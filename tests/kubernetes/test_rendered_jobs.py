"""Proves manifests/ by the real operators: the pods that they make of each kind of job are as we
mean them, made with no more rights than `render --rbac` gives."""

import json
import time
from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.cluster.rights import give_rights
from tests.kubernetes.cluster.waiting import wait_until
from tests.manifests.requests import KINDS, VNIC, experiment_of, request_of

from broadgauge.manifests.labels import JobKind, container_name, leader_address
from broadgauge.manifests.rbac import rights_file
from broadgauge.manifests.rendering import render_job
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.numbering import by_number
from broadgauge.platforms.kubernetes.pod_states import pod_state

pytestmark = pytest.mark.kubernetes

NUM_PODS = 3


def pods_of(control_plane: ControlPlane, namespace: str) -> list[Manifest]:
    with control_plane.client() as client:
        return [pod.to_dict() for pod in client.list(Pod, namespace=namespace)]


def create_all(objects: Objects, request: JobRequest) -> None:
    """A TrainJob is refused until the webhook has heard of its runtime."""
    for each in render_job(request).objects:
        end_s = time.monotonic() + 60
        while not (answer := objects.create(each)).is_success and time.monotonic() < end_s:
            assert each["kind"] == "TrainJob", answer.json()["message"]
            time.sleep(0.2)
        assert answer.is_success, answer.json()["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_operators_make_the_pods_that_we_mean(
    control_plane: ControlPlane, operators: Operators, namespace: str, kind: JobKind
) -> None:
    networks = [{"name": "vnic", "nics_per_node": 2, "kubernetes": VNIC}]
    experiment = experiment_of(
        namespace=namespace, networks=networks, shape=f"{NUM_PODS}x2", annotations={"team": "a"}
    )
    request = request_of(experiment, kind, files={"train.py": b"print()\n"})
    user = f"system:serviceaccount:{namespace}:demo-runner"
    control_plane.add_user(user, [f"system:serviceaccounts:{namespace}"])
    with control_plane.http() as http, control_plane.http(user) as limited:
        runner = Objects(limited)
        give_rights(http, rights_file(request).objects, user)
        create_all(runner, request)
        wait_until(
            lambda: len(pods_of(control_plane, namespace)) == NUM_PODS,
            limit_s=60,
            what=f"{NUM_PODS} pods of the {kind}",
        )
        pods = pods_of(control_plane, namespace)
        check_pods(pods, kind)
        for each in reversed(render_job(request).objects):
            runner.delete(each)


def check_pods(pods: list[Manifest], kind: JobKind) -> None:
    numbered = by_number([pod_state(pod) for pod in pods])
    assert sorted(numbered) == list(range(NUM_PODS))
    for pod in pods:
        spec, about = pod["spec"], pod["metadata"]
        (ranks,) = spec["containers"]
        assert ranks["name"] == container_name(kind)
        assert ranks["command"] == ["python3", "/broadgauge/program/broadgauge.zip", "pod"]
        # CPUs are asked for without a limit: two a rank.
        limits, requests = ranks["resources"]["limits"], ranks["resources"]["requests"]
        assert requests == {**limits, "cpu": "4"}
        assert ranks["resources"]["limits"]["nvidia.com/gpu"] == "2"
        variables: dict[str, Any] = {each["name"]: each for each in ranks["env"]}
        assert variables["BROADGAUGE_LEADER"]["value"] == leader_address(kind, "demo")
        numbers = {"BROADGAUGE_NODE", "PET_NODE_RANK", "JOB_COMPLETION_INDEX", "RANK"}
        assert numbers & variables.keys()
        token = variables["BROADGAUGE_TOKEN"]["valueFrom"]["secretKeyRef"]
        assert token["name"] == "demo-secrets"
        attached = json.loads(about["annotations"]["k8s.v1.cni.cncf.io/networks"])
        assert [each["interface"] for each in attached] == ["net1", "net2"]
        assert about["annotations"]["team"] == "a"
        assert about["labels"]["broadgauge.dev/run"] == "demo-1"
        assert spec["automountServiceAccountToken"] is False
        assert ranks["securityContext"]["runAsNonRoot"] is True
        assert "runAsNonRoot" not in spec["securityContext"]
        assert spec["restartPolicy"] == "Never"
        assert "podAntiAffinity" in spec["affinity"]
        mounts = {each["mountPath"] for each in ranks["volumeMounts"]}
        assert {"/broadgauge/program", "/broadgauge/orders", "/dev/shm"} <= mounts


@pytest.mark.parametrize("kind", KINDS)
def test_leader_is_a_name_that_a_service_has(
    control_plane: ControlPlane, operators: Operators, namespace: str, kind: JobKind
) -> None:
    """`<pod>` of a Service of its own, or `<hostname>.<subdomain>` of a headless one."""
    host, _, subdomain = leader_address(kind, "demo").partition(".")
    service: Manifest = {"apiVersion": "v1", "kind": "Service"}
    service["metadata"] = {"name": subdomain or host, "namespace": namespace}

    def leaders() -> list[Manifest]:
        pods = pods_of(control_plane, namespace)
        return [
            pod for pod in pods if host in (pod["metadata"]["name"], pod["spec"].get("hostname"))
        ]

    with control_plane.http() as http:
        objects = Objects(http)
        create_all(objects, request_of(experiment_of(namespace=namespace), kind))
        wait_until(lambda: bool(leaders()), limit_s=60, what=f"the pod {host}")
        wait_until(lambda: objects.read(service) is not None, limit_s=60, what="its Service")
        found = objects.read(service)
    (pod,) = leaders()
    assert found is not None
    assert found["spec"]["clusterIP"] == "None"
    assert found["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert pod["spec"].get("subdomain", "") == subdomain
