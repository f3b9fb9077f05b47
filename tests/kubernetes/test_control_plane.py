"""Proves tests/kubernetes/cluster: the control plane is a real one, and nothing of it is left."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
from lightkube.core.exceptions import ApiError
from lightkube.models.core_v1 import Container, PodCondition, PodSpec, ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod, ResourceQuota
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.guard import start_ticks
from tests.kubernetes.cluster.waiting import wait_until

pytestmark = pytest.mark.kubernetes


def test_it_is_ready_and_of_the_pinned_version(control_plane: ControlPlane) -> None:
    kubectl = [control_plane.programs.kubectl, "--kubeconfig", control_plane.kubeconfig()]
    said = subprocess.run([*kubectl, "version"], capture_output=True, text=True, check=True).stdout
    assert "Client Version: v1.34.4" in said
    assert "Server Version: v1.34.4" in said
    assert control_plane.is_ready()
    assert set(control_plane.processes.pids()) >= {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    }


def test_a_user_without_rights_is_refused_by_verb_and_resource(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.add_user("without-rights", ["guests"])
    with control_plane.client("without-rights") as client, pytest.raises(ApiError) as refusal:
        list(client.list(Pod, namespace=namespace))
    assert refusal.value.status.code == 403
    assert refusal.value.status.message == (
        'pods is forbidden: User "without-rights" cannot list resource "pods" in API group "" '
        f'in the namespace "{namespace}"'
    )


def test_a_quota_is_held(control_plane: ControlPlane, namespace: str) -> None:
    none = ResourceQuotaSpec(hard={"pods": "0"})
    container = Container(name="worker", image="none")
    pod = Pod(metadata=ObjectMeta(name="one"), spec=PodSpec(containers=[container]))
    with control_plane.client(namespace=namespace) as client:
        client.create(ResourceQuota(metadata=ObjectMeta(name="none"), spec=none))
        wait_until(
            lambda: bool(client.get(ResourceQuota, "none").status.hard),
            limit_s=60,
            what="the controller of quotas",
        )
        with pytest.raises(ApiError) as refusal:
            client.create(pod)
    assert refusal.value.status.code == 403
    assert "exceeded quota: none" in refusal.value.status.message


def test_a_pod_that_fits_no_node_is_said_to_be(control_plane: ControlPlane, namespace: str) -> None:
    container = Container(name="worker", image="none")
    spec = PodSpec(containers=[container], nodeSelector={"there": "is-none"})
    with control_plane.client(namespace=namespace) as client:
        client.create(Pod(metadata=ObjectMeta(name="waits"), spec=spec))

        def conditions() -> list[PodCondition]:
            return client.get(Pod, "waits").status.conditions or []

        wait_until(
            lambda: any(each.reason == "Unschedulable" for each in conditions()),
            limit_s=60,
            what="the scheduler to say that there is no node",
        )


def test_data_outlives_the_api_server(control_plane: ControlPlane, namespace: str) -> None:
    kept = ConfigMap(metadata=ObjectMeta(name="kept"), data={"a": "1"})
    with control_plane.client(namespace=namespace) as client:
        client.create(kept)
        control_plane.stop_api_server()
        assert not control_plane.is_ready()
        control_plane.start_api_server()
        assert client.get(ConfigMap, "kept").data == {"a": "1"}


def test_a_watch_goes_on_when_the_api_server_is_back(
    control_plane: ControlPlane, namespace: str
) -> None:
    seen: list[str] = []

    def watch() -> None:
        """From where it stood, or anew where the API server has forgotten that (410)."""
        version = None
        with control_plane.client(namespace=namespace) as client:
            while "after" not in seen:
                try:
                    for _, each in client.watch(ConfigMap, resource_version=version):
                        version = each.metadata.resourceVersion
                        seen.append(each.metadata.name)
                        if seen[-1] == "after":
                            break
                except httpx2.TransportError:
                    time.sleep(0.05)
                except ApiError as error:  # one that comes up asks to be left alone
                    if error.status.code not in (410, 429, 500, 503):
                        raise
                    version = None if error.status.code == 410 else version
                    time.sleep(0.05)

    watching = threading.Thread(target=watch, daemon=True)
    with control_plane.client(namespace=namespace) as client:
        client.create(ConfigMap(metadata=ObjectMeta(name="before")))
        watching.start()
        wait_until(lambda: "before" in seen, limit_s=60, what="what was there before")
        control_plane.restart_api_server()
        client.create(ConfigMap(metadata=ObjectMeta(name="after")))
        watching.join(60)
    assert seen.count("after") == 1


def test_a_revoked_user_is_refused(control_plane: ControlPlane) -> None:
    control_plane.add_user("revoked", ["system:masters"])
    with control_plane.http("revoked") as http:
        assert http.get("/api/v1/nodes").status_code == 200
        control_plane.revoke_user("revoked")
        wait_until(
            lambda: http.get("/api/v1/nodes").status_code == 401,
            limit_s=60,
            what="the API server to forget the token",
        )


def test_nothing_is_left_after_an_error() -> None:
    started = ControlPlane()
    pids: dict[str, int] = {}
    alive: dict[str, bool] = {}

    def fail_in_it() -> None:
        with started:
            pids.update(started.processes.pids())
            alive.update({name: start_ticks(pid) is not None for name, pid in pids.items()})
            raise RuntimeError("of the test")

    with pytest.raises(RuntimeError, match="of the test"):
        fail_in_it()
    programs = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    assert alive == dict.fromkeys(programs, True)
    assert not any(start_ticks(pid) for pid in pids.values())
    assert not started.folder.exists()


def test_nothing_is_left_of_an_owner_that_was_killed(repository: Path) -> None:
    program = "\n".join(
        (
            "import time",
            "from tests.kubernetes.cluster.control_plane import ControlPlane",
            "with ControlPlane() as started:",
            "    print(started.folder, *started.processes.pids().values(), flush=True)",
            "    time.sleep(600)",
        )
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": "."},
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        folder, *pids = owner.stdout.readline().split()
        assert len(pids) == 4
        owner.kill()
    wait_until(lambda: not Path(folder).exists(), limit_s=60, what=f"the end of {folder}")
    assert not any(start_ticks(int(pid)) for pid in pids)
