"""Proves tests/kubernetes/cluster: the control plane is a real one, and nothing of it is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.control_plane.recipes import KUBERNETES_VERSION
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import RefusedError
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.guard import start_ticks
from tests.kubernetes.cluster.processes import ProcessEndedError, Processes
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until

pytestmark = pytest.mark.kubernetes

PROGRAMS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}


def test_it_is_ready_and_of_the_pinned_version(control_plane: ControlPlane) -> None:
    assert control_plane.api().request("GET", "/readyz") == "ok"
    told = control_plane.api().request("GET", "/version")
    assert told["gitVersion"] == f"v{KUBERNETES_VERSION}"
    assert set(control_plane.processes.pids()) >= PROGRAMS


def test_a_right_job_passes_a_dry_run_and_is_not_stored(scratch: Scratch) -> None:
    accepted = scratch.create(samples.job(), dry_run=True)
    assert accepted["spec"]["completionMode"] == "Indexed"
    assert accepted["spec"]["podReplacementPolicy"] == "TerminatingOrFailed"  # a default
    assert scratch.read(samples.job()) is None


def test_a_misspelt_field_is_refused_by_its_path(scratch: Scratch) -> None:
    job = samples.job()
    job["spec"]["template"]["spec"]["volumes"] = [{"name": "shm", "emptydir": {}}]
    with pytest.raises(RefusedError) as refused:
        scratch.create(job, dry_run=True)
    assert (refused.value.status, refused.value.reason) == (400, "BadRequest")
    unknown = 'unknown field "spec.template.spec.volumes[0].emptydir"'
    assert unknown in refused.value.message
    assert unknown in str(refused.value)


def test_a_value_that_only_the_server_judges_is_refused(scratch: Scratch) -> None:
    job = samples.job()
    job["spec"]["completions"] = -1
    with pytest.raises(RefusedError, match=r"spec\.completions: Invalid value: -1") as refused:
        scratch.create(job, dry_run=True)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")


def test_without_strict_a_misspelt_field_is_dropped(scratch: Scratch) -> None:
    job = samples.job()
    job["spec"]["completion"] = 2
    accepted = scratch.create(job, dry_run=True, strict=False)
    assert "completion" not in accepted["spec"]


def test_apply_creates_and_changes(scratch: Scratch) -> None:
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
    scratch.apply(kept | {"data": {"a": "1"}})
    scratch.apply(kept | {"data": {"a": "2"}})
    found = scratch.read(kept)
    assert found is not None
    assert found["data"] == {"a": "2"}
    scratch.apply(kept | {"data": {"a": "3"}}, dry_run=True)
    assert scratch.read(kept) == found


def test_a_kind_that_nobody_serves_is_named(scratch: Scratch) -> None:
    with pytest.raises(LookupError, match="no kind Jobs of batch/v1"):
        scratch.create(samples.job() | {"kind": "Jobs"}, dry_run=True)


def test_pods_of_a_job_exist_and_wait_for_a_node(scratch: Scratch) -> None:
    scratch.create(samples.job(pods=2))

    def unschedulable() -> list[str]:
        return [
            pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
            for pod in scratch.find("v1", "Pod")
            for condition in pod["status"].get("conditions", ())
            if condition["reason"] == "Unschedulable"
        ]

    wait_until(lambda: sorted(unschedulable()) == ["0", "1"], "two pods that fit no node")


def test_a_pod_that_may_more_than_its_namespace_allows_is_warned_of(scratch: Scratch) -> None:
    level = {"pod-security.kubernetes.io/warn": "restricted"}
    metadata = {"name": scratch.namespace, "labels": level}
    scratch.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def warnings() -> list[str]:
        scratch.create(samples.job(), dry_run=True)
        return scratch.api.warnings

    wait_until(lambda: bool(warnings()), "a warning")
    assert "runAsNonRoot != true" in warnings()[0]


def test_a_user_without_rights_is_refused_until_a_role_gives_them(
    scratch: Scratch, guest: Scratch
) -> None:
    with pytest.raises(RefusedError) as refused:
        guest.create(samples.job(), dry_run=True)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    may_not = 'User "guest" cannot create resource "jobs" in API group "batch" in the namespace'
    assert may_not in refused.value.message
    rule = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]}
    named = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "submits"}}
    group = "rbac.authorization.k8s.io"
    scratch.create(named | {"kind": "Role", "rules": [rule]})
    scratch.create(
        named
        | {
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "submits"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "guest"}],
        }
    )

    def may() -> bool:
        try:
            guest.create(samples.job(), dry_run=True)
        except RefusedError:
            return False
        return True

    wait_until(may, "the role to count")


def test_a_process_that_ends_or_hangs_says_its_last_lines(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        short = processes.start("short", ["sh", "-c", "echo no such flag; exit 3"])
        with pytest.raises(ProcessEndedError, match="short ended with 3:\nno such flag\n"):
            short.wait_until_ready(lambda: "no answer")
        hangs = processes.start("hangs", ["sleep", "1000"])
        with pytest.raises(ProcessEndedError, match="hangs is not ready after 0 s: no answer\n"):
            hangs.wait_until_ready(lambda: "no answer", limit_s=0)
    finally:
        processes.end_all()


OWNER = """
import sys, time
from pathlib import Path
from tests.kubernetes.cluster.processes import Processes
processes = Processes(Path(sys.argv[1]))
print(*(processes.start(name, ["sleep", "1000"]).pid for name in "abc"), flush=True)
time.sleep(1000)
"""


def test_nothing_is_left_of_an_owner_that_was_killed(tmp_path: Path, repository: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": "."},
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pids = list(map(int, owner.stdout.readline().split()))
        assert all(map(start_ticks, pids))
        owner.kill()
    assert len(pids) == 3
    wait_until(lambda: not any(map(start_ticks, pids)), "all three to end")
