"""Does `cleanup` delete what it should on a real API server, with no other rights than `render
--rbac` prints? No kubelet: pods wait, and a job of no pods ends at once."""

from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.runs import User
from tests.kubernetes.test_api_runs import wait_for_rights

from broadgauge.cli.main import main
from broadgauge.manifests.names import CASE, EXPERIMENT, JOB, MANAGER, RUN
from broadgauge.platforms.kubernetes import owned
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.job_states import has_ended
from broadgauge.platforms.kubernetes.owned import create_all
from broadgauge.specs.errors import ExitCode
from broadgauge.specs.kubernetes.settings import MANAGED_BY

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("operators")]

KINDS = (
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
)
"""Of objects of a run."""


@pytest.fixture
def user(scratch: Scratch, control_plane: ControlPlane, tmp_path: Path) -> User:
    """Who has the rendered rights."""
    found = User(scratch, control_plane, tmp_path)
    found.write()
    found.give_rights()
    return found


@pytest.fixture
def api(user: User, monkeypatch: pytest.MonkeyPatch) -> Api:
    """The user's, as `cleanup` finds it."""
    monkeypatch.setenv("KUBECONFIG", str(user.folder / "kubeconfig"))
    monkeypatch.chdir(user.folder)
    monkeypatch.setattr(owned, "LOOK_EVERY_S", 0.05)
    connected = Api.connect(None)
    wait_for_rights(connected, user.namespace)
    return connected


def made(kind: str, name: str, labels: dict[str, str], **more: Any) -> Manifest:
    about = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": about, **more}


def objects_of(run: str, num_pods: int) -> list[Manifest]:
    """In the order in which a run makes them."""
    labels = {MANAGED_BY: MANAGER, EXPERIMENT: "pods", RUN: run, JOB: run}
    job = samples.job(pods=num_pods)
    job["metadata"] = {"name": run, "labels": labels}
    job["spec"]["template"]["metadata"] = {"labels": labels}
    return [
        made("ConfigMap", f"{run}-program", labels),
        made("ConfigMap", f"{run}-orders", labels),
        made("Secret", f"{run}-secrets", labels, stringData={"token": "x"}),
        made("Service", run, labels, spec={"clusterIP": "None", "selector": {JOB: run}}),
        job,
    ]


def somebody_elses(run: str) -> list[Manifest]:
    """With labels that look like ours, and what outlives runs."""
    rendered = {MANAGED_BY: MANAGER, EXPERIMENT: "pods", CASE: "pods-2x1"}
    ours = {MANAGED_BY: MANAGER, RUN: run, JOB: run}
    pod = samples.pod_template()["spec"]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return [
        made("Pod", "run-alone", {RUN: run, JOB: run}, spec=pod),
        made("Pod", "prefix", {MANAGED_BY: MANAGER, "broadgauge.dev/runs": run}, spec=pod),
        made("Pod", "no-job-of-ours", ours, spec=pod),
        made("ConfigMap", "rendered", rendered),
        made("ConfigMap", "another-manager", {**ours, MANAGED_BY: "broadgauge-2"}),
        made("Secret", "name-alone-secrets", {RUN: run}),
        made("PersistentVolumeClaim", "data", ours, spec=claim),
    ]


def names_of(scratch: Scratch, run: str) -> list[str]:
    """What has both of its labels and is none of `somebody_elses`."""
    others = {each["metadata"]["name"] for each in somebody_elses(run)}
    selector = f"{MANAGED_BY}={MANAGER},{RUN}={run}"
    found = (each for kind in KINDS for each in scratch.find(*kind, selector))
    return sorted({str(each["metadata"]["name"]) for each in found} - others)


def test_all_are_the_ended_ones_of_mine_and_nothing_elses(
    user: User,
    api: Api,
    scratch: Scratch,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for run, num_pods in (("ended-1", 0), ("waiting-1", 2)):
        create_all(api, user.namespace, objects_of(run, num_pods), print)
    with monkeypatch.context() as patched:
        patched.setattr(owned, "this_owner", lambda: "ana@laptop")
        create_all(api, user.namespace, objects_of("theirs-1", 0), print)
    others = [scratch.create(each) for each in somebody_elses("ended-1")]
    wait_until(lambda: len(names_of(scratch, "waiting-1")) == 6, "its two pods")
    jobs = [objects_of(run, 0)[-1] for run in ("ended-1", "theirs-1")]
    wait_until(lambda: all(has_ended(scratch.read(job) or {}) for job in jobs), "two jobs' end")
    wait_until(lambda: len(scratch.find("v1", "Pod")) == 5, "all pods")

    assert main(["cleanup", "--on", "kubernetes"]) == ExitCode.PLATFORM_REFUSED
    listed = capsys.readouterr()
    lines = listed.out.splitlines()
    assert [line.partition(" (")[0] for line in lines] == ["ended-1", "theirs-1", "waiting-1"]
    assert "pods: none" in lines[0]
    assert "of ana@laptop" in lines[1]
    assert "pods: 2 Pending" in lines[2]
    assert "pytorchjobs.kubeflow.org" in listed.err  # no right to list them
    assert [len(names_of(scratch, run)) for run in ("ended-1", "theirs-1", "waiting-1")] == [
        4,
        4,
        6,
    ]

    main(["cleanup", "--all"])
    assert "theirs-1 is left: it is somebody else's" in (told := capsys.readouterr().err)
    assert "waiting-1 is left: it may be running" in told
    assert names_of(scratch, "ended-1") == []
    assert (len(names_of(scratch, "theirs-1")), len(names_of(scratch, "waiting-1"))) == (4, 6)

    main(["cleanup", "--all", "--running"])
    assert names_of(scratch, "waiting-1") == []
    main(["cleanup", "theirs-1"])
    assert names_of(scratch, "theirs-1") == []
    left = [scratch.read(each) for each in others]
    assert all(each and "deletionTimestamp" not in each["metadata"] for each in left)


def test_who_may_look_at_all_kinds_is_told_that_nothing_is_left(
    user: User, api: Api, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind that is missing is named until then."""
    assert main(["cleanup"]) == ExitCode.PLATFORM_REFUSED
    assert "nothing of ours" not in capsys.readouterr().err
    others = [
        {"apiGroups": [each.group], "resources": [each.plural], "verbs": ["list"]}
        for each in owned.LISTED
        if each.group
    ]
    rbac = "rbac.authorization.k8s.io"
    about = {"apiVersion": f"{rbac}/v1", "metadata": {"name": "looks"}}
    account = f"{user.namespace}-user"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": user.namespace}
    reference = {"apiGroup": rbac, "kind": "Role", "name": "looks"}
    scratch.create(about | {"kind": "Role", "rules": others})
    scratch.create(about | {"kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
    wait_until(lambda: main(["cleanup"]) == ExitCode.OK, "the right to list all kinds")
    assert capsys.readouterr().err.endswith(
        f"nothing of ours is left in namespace {user.namespace}\n"
    )
