"""Does a real API server keep what tests/platforms/kubernetes/ has in scripts?

A run's objects of each kind of job are made, watched and deleted by a service account whose Role is
of `manifests/rights.py`, as is proven by its having no other.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.accounts import Account
from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.timeouts import HANG_S

from broadgauge.manifests import rights
from broadgauge.manifests.names import JOB, MANAGER, RUN
from broadgauge.platforms.kubernetes import pod_warnings, watching
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.job_states import RESOURCES, choose_kind
from broadgauge.platforms.kubernetes.numbering import by_number
from broadgauge.platforms.kubernetes.owned import create_all, delete_all, find_all, selector_of
from broadgauge.platforms.kubernetes.owner_references import give_to_job, owned_by, parted
from broadgauge.platforms.kubernetes.ownership import created, events_of_makers, is_pod_of
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState, waits
from broadgauge.platforms.kubernetes.pod_warnings import PodWarnings
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import CONFIG_MAPS, PODS, resource_of
from broadgauge.platforms.kubernetes.watching import PodWatch
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.kubernetes.settings import MANAGED_BY, JobKind

pytestmark = pytest.mark.kubernetes

NAME = "demo-1"
LABELS = {MANAGED_BY: MANAGER, RUN: NAME, JOB: NAME}
RBAC = "rbac.authorization.k8s.io"


def plain(kind: str, name: str, labels: dict[str, str] | None = None, **more: Any) -> Manifest:
    about = {"name": name, "labels": LABELS if labels is None else labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": about, **more}


def named(manifest: Manifest) -> Manifest:
    return manifest | {"metadata": {"name": NAME, "labels": LABELS}}


def label_pods(template: Manifest) -> None:
    template["metadata"] = {**template.get("metadata", {}), "labels": LABELS}


def job_of(kind: JobKind) -> list[Manifest]:
    """Of two pods."""
    match kind:
        case "job":
            job = named(samples.job(pods=2))
            label_pods(job["spec"]["template"])
            return [job]
        case "pytorchjob":
            job = named(samples.pytorch_job())
            for replicas in job["spec"]["pytorchReplicaSpecs"].values():
                label_pods(replicas["template"])
            return [job]
        case "trainjob":
            runtime = named(samples.training_runtime())
            (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
            label_pods(replicated["template"]["spec"]["template"])
            return [runtime, named(samples.train_job(runtime=NAME))]


def objects_of(kind: JobKind) -> list[Manifest]:
    headless = {"clusterIP": "None", "selector": {JOB: NAME}}
    return [
        plain("ConfigMap", f"{NAME}-program", data={"a": "1"}),
        plain("ConfigMap", f"{NAME}-orders"),
        plain("Secret", f"{NAME}-secrets", stringData={"token": "very-secret"}),
        plain("Service", NAME, spec=headless),
        *job_of(kind),
    ]


class Runner:
    """A service account of the test's namespace, without a right at first."""

    def __init__(self, scratch: Scratch, control_plane: ControlPlane, folder: Path) -> None:
        self.scratch, self.namespace = scratch, scratch.namespace
        account = Account(scratch, control_plane, "runner")
        self.token, self._subject = account.token, account.subject
        self.kubeconfig = folder / "runner.kubeconfig"
        account.write_kubeconfig(self.kubeconfig)

    def allow(self, objects: list[Manifest]) -> None:
        """What a run with these objects needs, and no more."""
        role = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "runner"}}
        reference = {"apiGroup": RBAC, "kind": "Role", "name": "runner"}
        self.scratch.create(role | {"kind": "Role", "rules": rights.rules(objects)})
        self.scratch.create(
            role | {"kind": "RoleBinding", "roleRef": reference, "subjects": [self._subject]}
        )


@pytest.fixture
def runner(scratch: Scratch, control_plane: ControlPlane, tmp_path: Path) -> Runner:
    return Runner(scratch, control_plane, tmp_path)


@pytest.fixture
def api(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Api:
    """The runner's."""
    monkeypatch.setenv("KUBECONFIG", str(runner.kubeconfig))
    connected = Api.connect(None)
    assert connected.default_namespace == runner.namespace
    return connected


def until(is_so: Callable[[], bool], found: PodWatch) -> None:
    """Looked at as often as something has changed."""
    for _ in range(int(HANG_S / 0.2)):
        if is_so():
            return
        found.wait(0.2)
    raise TimeoutError("it does not come")


@contextmanager
def watched(api: Api, namespace: str) -> Iterator[PodWatch]:
    found = PodWatch(api, namespace, selector_of(NAME), print)
    try:
        yield found
    finally:
        found.close()


def wait_for_rights(api: Api, namespace: str) -> None:
    """The server hears of roles by a watch."""
    for kind in (PODS, CONFIG_MAPS):

        def may_list(kind: Any = kind) -> bool:
            with suppress(ApiError):
                return bool(api.list(kind, namespace))
            return False

        wait_until(may_list, f"the right to list {kind.plural}")


def bystanders(scratch: Scratch) -> list[Manifest]:
    """Somebody else's, with labels that look like ours."""
    spec = samples.pod_template()["spec"]
    labelled = [
        plain("Pod", "prefix", {"broadgauge.dev/runs": NAME, MANAGED_BY: MANAGER}, spec=spec),
        plain("Pod", "forged", spec=spec),
        plain("ConfigMap", "run-alone", {RUN: NAME}),
        plain("ConfigMap", "another-run", LABELS | {RUN: "demo-2"}),
    ]
    return [scratch.create(each) for each in labelled]


@pytest.mark.usefixtures("operators")
@pytest.mark.parametrize("kind", ["job", "pytorchjob", "trainjob"])
def test_a_run_is_made_and_watched_with_a_role_that_is_enough(
    runner: Runner, api: Api, scratch: Scratch, kind: JobKind
) -> None:
    objects, namespace = objects_of(kind), runner.namespace
    runner.allow(objects)
    wait_for_rights(api, namespace)
    others = bystanders(scratch)
    assert choose_kind(api, "auto") == "trainjob"
    assert choose_kind(api, kind) == kind
    place = JobPlace(context=None, namespace=namespace, run=NAME, name=NAME, kind=kind, number=0)
    first, rest = parted(place, objects)
    (program,) = create_all(api, namespace, [first], print)
    made = create_all(api, namespace, owned_by(program, place, rest), print)
    said: list[str] = []
    give_to_job(api, namespace, place, owner=program, made=made, say=said.append)
    assert said == []
    known = created(place, made, 2)

    def ours(found: PodWatch) -> dict[int, PodState]:
        return by_number([each for each in found.pods() if is_pod_of(known, each)], 2)

    with watched(api, namespace) as found:
        until(lambda: set(ours(found)) == {0, 1}, found)
        until(lambda: all(each.why for each in ours(found).values()), found)
        states = list(ours(found).values())
        assert {each.stage for each in states} == {PodStage.UNSCHEDULED}
        assert waits(states).startswith("2 pods waiting for a node (no nodes available")
        assert {"forged"} <= {each.name for each in found.pods()}  # heard, and not the job's
        # Kubernetes' own garbage collector hears of an operator's kinds half a minute later.
        if kind == "job":
            assert delete_all(api, namespace, NAME, said.append, RESOURCES[kind])
            until(lambda: is_gone(found, states), found)
            assert find_all(api, namespace, NAME, [NAME]).objects == ()
    assert said == []
    left = [scratch.read(each) for each in others]
    assert all(each and "deletionTimestamp" not in each["metadata"] for each in left)


def is_gone(found: PodWatch, before: list[PodState]) -> bool:
    names = {each.name for each in before}
    return all(each.stage is PodStage.GONE for each in found.pods() if each.name in names)


def test_what_may_not_be_done_is_named_and_the_token_is_not(
    runner: Runner, api: Api, scratch: Scratch
) -> None:
    with pytest.raises(ApiError) as caught:
        api.list(PODS, runner.namespace)
    told = refusal(caught.value, "looking for pods")
    assert f"you may not list pods in namespace {runner.namespace}" in told.message
    assert "--rbac" in str(told.hint)
    assert runner.token not in str(told)
    with pytest.raises(PlatformError, match=r"you may not create jobs\.batch in namespace"):
        create_all(api, runner.namespace, job_of("job"), print)


@pytest.fixture
def admin(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    return Api.connect("test")


def test_what_has_the_name_since_is_not_deleted(admin: Api, scratch: Scratch) -> None:
    body, space = plain("ConfigMap", "kept"), scratch.namespace
    uid = admin.create(CONFIG_MAPS, space, body)["metadata"]["uid"]
    assert admin.delete(CONFIG_MAPS, space, "kept", uid)
    wait_until(lambda: not admin.has(CONFIG_MAPS, space, "kept"), "it to go")
    assert not admin.delete(CONFIG_MAPS, space, "kept", uid)
    admin.create(CONFIG_MAPS, space, body)
    with pytest.raises(ApiError) as caught:
        admin.delete(CONFIG_MAPS, space, "kept", uid)
    assert caught.value.status == 409
    assert admin.has(CONFIG_MAPS, space, "kept")


@pytest.mark.usefixtures("operators")
def test_a_version_that_is_too_old_is_said_as_a_watch_looks_for_it(
    admin: Api, scratch: Scratch
) -> None:
    """Of a kind that the server has not known from its start: what came before is nowhere."""
    with pytest.raises(ApiError) as caught:
        list(admin.watch(RESOURCES["trainjob"], scratch.namespace, "", "1", 20.0))
    assert (caught.value.status, caught.value.reason) == (watching.GONE, "Expired")


def test_a_quota_that_is_used_up_is_said_of_what_we_make_and_of_pods(
    admin: Api, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard = {"count/configmaps": "0", "pods": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    scratch.create(quota | {"spec": {"hard": hard}})

    def is_counted() -> bool:
        there = scratch.read(quota)
        return there is not None and there.get("status", {}).get("hard") == hard

    wait_until(is_counted, "the quota to be counted")
    space = scratch.namespace
    with pytest.raises(PlatformError, match="a quota is used up") as caught:
        create_all(admin, space, [plain("ConfigMap", "one-more")], print)
    assert "exceeded quota: small" in caught.value.message
    made = create_all(admin, space, job_of("job"), print)
    place = JobPlace(context=None, namespace=space, run=NAME, name=NAME, kind="job", number=0)
    known = created(place, made, 2)
    monkeypatch.setattr(pod_warnings, "ASK_EVERY_S", 0.0)
    warnings = PodWarnings(api=admin, namespace=space)
    words = ["of a pod that lacks"]

    def is_said() -> bool:
        words.append(warnings.lack(1, events_of_makers(known)))
        return bool(words[-1])

    wait_until(is_said, "the controller to say why a pod lacks")
    assert words[-1].startswith("; 1 pod can't be made: ")
    assert "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1" in words[-1]
    assert resource_of(made[0]) is RESOURCES["job"]
