"""Do rendered pods get what their security context asks for, as far as the kernel gives it?"""

from typing import Any

import pytest
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.config import Image, NodeSpec, Storage, host_image
from tests.kubernetes.pods import Pods, pod_manifest
from tests.manifests.requests import ROCE, experiment_of, request_of
from tests.manifests.test_rendering import container

from broadgauge.agent import bundle
from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.rendering import render_job
from broadgauge.platforms.kubernetes.pod_states import pod_state

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]
ANY_UID = 1_000_680_000
NODES = {
    "nodes": [NodeSpec(name="kub-0", resources={"cpu": "8"})],
    "storage": Storage(),
    "default_image": Image(env=host_image().env, user=ANY_UID),
}
LOCK_16_MIB = """
import ctypes, mmap, pathlib
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").open())
print("user", status["Uid"].split()[0], "CapEff", int(status["CapEff"], 16))
libc = ctypes.CDLL(None, use_errno=True)
space = mmap.mmap(-1, 16 << 20)
address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(space)))
print("locked" if libc.mlock(address, ctypes.c_size_t(16 << 20)) == 0 else "refused")
"""
"""Twice what a node lets a process lock."""


def locks(pods: Pods, context: dict[str, Any]) -> str:
    return pods.run(
        pod_manifest(
            "locker", "", main_command=["python3", "-c", LOCK_16_MIB], main_securityContext=context
        )
    )


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (None, f"user {ANY_UID} CapEff 0\nrefused\n"),
        (1001, "user 1001 CapEff 0\nrefused\n"),
        (0, f"user 0 CapEff {1 << 14}\nlocked\n"),
    ],
)
def test_rdma_locks_memory_as_root_alone(pods: Pods, user: int | None, said: str) -> None:
    networks = [{"name": "roce", "kubernetes": ROCE}]
    request = request_of(experiment_of(networks=networks, run_as_user=user))
    assert locks(pods, container(request)["securityContext"]) == said


def test_kernel_gives_another_users_process_no_added_capability(pods: Pods) -> None:
    """Why it is not asked for then. Source: capabilities(7), transformation during execve."""
    asked = {"runAsUser": 1001, "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]}}
    assert locks(pods, asked) == "user 1001 CapEff 0\nrefused\n"


VOLUME = {"name": "kept", "mount": "/kept", "size_bytes": "1 GiB", "storage_class": "folder"}


def prepared(pods: Pods, **settings: Any) -> tuple[str, str]:
    """Its Job's last condition, and what it said, with a new claim."""
    experiment = experiment_of(
        image="host",
        volumes=[VOLUME],
        prepare={"volume": "kept", "model": "/etc/hostname"},
        **settings,
    )
    request = request_of(experiment)
    files = (claims_file(request), prepare_file(request))
    for each in (body for file in files if file is not None for body in file.objects):
        pods.apply(each)

    def ends() -> list[str]:
        found = pods.read("apis/batch/v1", "jobs/demo-prepare").get("status", {})
        types = (each["type"] for each in found.get("conditions", ()))
        return [each for each in types if each in ("Complete", "Failed")]

    wait_until(lambda: bool(ends()), limit_s=60, what="the end of the Job")
    listed = pods.read("api/v1", "pods")["items"]
    (name,) = (each["metadata"]["name"] for each in listed)  # no second try
    return ends()[0], pods.log(name, container="prepare")


@pytest.mark.parametrize("user", [None, 1001])
def test_claim_of_roots_is_written_by_the_group_it_is_given_to(
    pods: Pods, user: int | None
) -> None:
    end, said = prepared(pods, run_as_user=user, fs_group=2000)
    assert end == "Complete", said
    assert "all is there" in said


def test_claim_that_can_not_be_written_is_said_with_the_key_that_helps(pods: Pods) -> None:
    end, said = prepared(pods)
    assert end == "Failed"
    (line,) = said.splitlines()
    assert f"Permission denied: user {ANY_UID}, groups [0], may not write this volume" in line
    assert "`kubernetes.fs_group`" in line


def test_root_writes_what_is_roots(pods: Pods) -> None:
    end, said = prepared(pods, run_as_user=0)
    assert end == "Complete", said


def test_leader_that_can_not_keep_its_results_ends_with_the_key_that_helps(pods: Pods) -> None:
    """In its container's state, which is what the tool shows of it."""
    experiment = experiment_of(shape="1x2", image="host", volumes=[VOLUME], results="kept")
    request = request_of(experiment, "job", gpus_per_pod=0, program=bundle.build())
    pods.config_map("demo-secrets", kind="Secret", BROADGAUGE_TOKEN="t" * 64)
    for each in render_job(request).objects:
        pods.apply(each)

    def messages() -> list[str]:
        states = [pod_state(each) for each in pods.read("api/v1", "pods")["items"]]
        return [str(each.why) for each in states if each.has_ended]

    wait_until(lambda: bool(messages()), limit_s=60, what="the end of the first pod")
    (said,) = messages()
    assert said.startswith(
        "container pytorch: exit code 2: its leader can't keep anything in /kept"
    )
    assert f"user {ANY_UID}, groups [0], may not write this volume" in said
    assert "`kubernetes.fs_group`" in said
