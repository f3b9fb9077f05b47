"""Is all that a cluster would refuse said at once, and is nothing stored meanwhile?"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    NAMESPACE,
    Answer,
    Asked,
    FakeApi,
    listed,
    refused,
)
from tests.platforms.kubernetes.test_making import FILLED, NIC, objects
from tests.running.rendering.runs import small_run

from broadgauge.manifests.run_job import RunJob
from broadgauge.platforms.kubernetes import api as api_module
from broadgauge.platforms.kubernetes.checks import check_before
from broadgauge.platforms.kubernetes.job_states import choose_kind
from broadgauge.platforms.kubernetes.named_objects import named_objects
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.kubernetes.settings import JobKind

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
IN_NAMESPACE = f"namespaces/{NAMESPACE}"
CORE = f"/api/v1/{IN_NAMESPACE}"
JOBS = f"/apis/kubeflow.org/v1/{IN_NAMESPACE}/pytorchjobs"
DEFINITIONS = f"/apis/k8s.cni.cncf.io/v1/{IN_NAMESPACE}/network-attachment-definitions"
BATCH_JOBS = f"/apis/batch/v1/{IN_NAMESPACE}/jobs"
GROUPS = {
    "kubeflow.org/v1": ["pytorchjobs"],
    "k8s.cni.cncf.io/v1": ["network-attachment-definitions"],
    "storage.k8s.io/v1": ["storageclasses"],
    "scheduling.k8s.io/v1": ["priorityclasses"],
    "batch/v1": ["jobs"],
    "trainer.kubeflow.org/v1alpha1": ["trainjobs", "trainingruntimes"],
}


def may(*denied: tuple[str, str]) -> Any:
    """Answers reviews: everything but these verbs and resources."""

    def answer(asked: Asked) -> Answer:
        wanted = asked.body["spec"]["resourceAttributes"]
        part = f"/{wanted['subresource']}" if "subresource" in wanted else ""
        is_denied = (wanted["verb"], wanted["resource"] + part) in denied
        return Answer(status=201, body={"status": {"allowed": not is_denied}})

    return answer


@pytest.fixture
def willing(fake: FakeApi) -> FakeApi:
    """A cluster that would take all of it."""
    fake.script("GET", f"/api/v1/{IN_NAMESPACE}", Answer(body={"metadata": {"name": NAMESPACE}}))
    fake.script("POST", REVIEWS, may())
    for group, kinds in GROUPS.items():
        found = {"resources": [{"name": kind} for kind in kinds]}
        fake.script("GET", f"/apis/{group}", Answer(body=found))
    for path in (JOBS, BATCH_JOBS, DEFINITIONS):
        fake.script("POST", path, Answer(status=201))
    for kind in ("trainjobs", "trainingruntimes"):
        path = f"/apis/trainer.kubeflow.org/v1alpha1/{IN_NAMESPACE}/{kind}"
        fake.script("POST", path, Answer(status=201))
    for kind in ("pods", "configmaps", "secrets", "services", "persistentvolumeclaims"):
        fake.script("POST", f"{CORE}/{kind}", Answer(status=201))
    return fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the experiment."""
    (tmp_path / "train.py").touch()
    return tmp_path


def run_of(folder: Path, *overrides: str, kind: JobKind = "pytorchjob") -> RunJob:
    return small_run(folder, *overrides, kind=kind)


def check(fake: FakeApi, run: RunJob) -> list[str]:
    """What is said beside a refusal."""
    said: list[str] = []
    check_before(fake.api(), objects(run), NAMESPACE, said.append)
    return said


def refusal_of(fake: FakeApi, run: RunJob) -> str:
    with pytest.raises(PlatformError) as caught:
        check(fake, run)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["job", "pytorchjob", "trainjob"])
def test_a_willing_cluster_is_asked_a_bounded_number_of_times_and_keeps_nothing(
    willing: FakeApi, folder: Path, kind: JobKind
) -> None:
    run = run_of(folder, kind=kind)
    assert check(willing, run) == []
    assert len(willing.asked) < 60
    made = [each for each in willing.asked if each.method == "POST" and each.path != REVIEWS]
    assert len(made) == len(objects(run).own) + 2  # its Secret, a pod as its operator makes it
    for each in made:
        assert (each.query["dryRun"], each.query["fieldValidation"]) == ("All", "Strict")


def test_a_missing_namespace_is_said_alone(willing: FakeApi, folder: Path) -> None:
    willing.script("GET", f"/api/v1/{IN_NAMESPACE}", refused(404, "NotFound"))
    text = refusal_of(willing, run_of(folder))
    assert f"kubernetes.namespace: there is no namespace {NAMESPACE}" in text
    assert f"kubectl create namespace {NAMESPACE}" in text
    assert len(willing.asked) == 1


def test_a_namespace_that_is_going_away_is_said(willing: FakeApi, folder: Path) -> None:
    going = {"metadata": {"name": NAMESPACE, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    willing.script("GET", f"/api/v1/{IN_NAMESPACE}", Answer(body=going))
    assert "is being deleted" in refusal_of(willing, run_of(folder))


MAPPED = (
    "networks.lan.kubernetes={attachment: host-device, devices: [ens13], "
    "ipam: {kind: address-map, map: map.yaml}}"
)
NODES = "/api/v1/nodes"


def nodes(*names: str) -> Answer:
    return listed(*({"metadata": {"name": name}} for name in names))


@pytest.fixture
def mapped(folder: Path) -> RunJob:
    """Of two pods, which go to nodes of a map."""
    lines = [f"worker-{each}:ens13:net1:10.0.0.{each + 1}\n" for each in range(3)]
    (folder / "map.yaml").write_text("# ours\n" + "".join(lines))
    return run_of(folder, MAPPED)


def test_a_node_of_the_map_that_is_none_of_the_cluster_is_named_with_its_line(
    willing: FakeApi, mapped: RunJob
) -> None:
    willing.script("GET", NODES, nodes("worker-0", "worker-11", "other"))
    text = refusal_of(willing, mapped)
    for words in (
        "networks.lan.kubernetes.ipam.map: map.yaml:3: the cluster has no node `worker-1`",
        "did you mean `worker-11`?",
        "map.yaml:4: the cluster has no node `worker-2`",
        "1 of the map's nodes are there, for 2 pods",
    ):
        assert words in text, text


def test_nodes_of_the_map_that_are_not_needed_are_said_and_refuse_nothing(
    willing: FakeApi, mapped: RunJob
) -> None:
    willing.script("GET", NODES, nodes("worker-0", "worker-1"))
    (said,) = check(willing, mapped)
    assert "map.yaml:4: the cluster has no node `worker-2`" in said


@pytest.mark.parametrize(
    "answer", [nodes("worker-0", "worker-1", "worker-2"), refused(403, "Forbidden")]
)
def test_of_a_map_whose_nodes_are_there_or_may_not_be_listed_nothing_is_said(
    willing: FakeApi, mapped: RunJob, answer: Answer
) -> None:
    willing.script("GET", NODES, answer)
    assert check(willing, mapped) == []
    assert willing.count("GET", NODES) == 1


def test_missing_rights_are_listed_with_verb_and_resource(willing: FakeApi, folder: Path) -> None:
    denied = may(("create", "pytorchjobs"), ("get", "pods/log"), ("delete", "secrets"))
    willing.script("POST", REVIEWS, denied)
    text = refusal_of(willing, run_of(folder))
    for words in (
        f"you may not create pytorchjobs.kubeflow.org in namespace {NAMESPACE}",
        "you may not get pods/log",
        "you may not delete secrets",
        "nothing was made",
        "render EXPERIMENT --rbac",
    ):
        assert words in text, text
    assert willing.count("POST", JOBS) == 0  # said once, not again by a rehearsal


def test_a_right_without_which_a_run_only_knows_less_refuses_nothing(
    willing: FakeApi, folder: Path
) -> None:
    willing.script("POST", REVIEWS, may(("list", "events"), ("watch", "events")))
    assert check(willing, run_of(folder)) == [
        f"you may not list, watch events in namespace {NAMESPACE}: the run does without, and may "
        "know less"
    ]


def test_no_right_to_list_secrets_is_asked_for(willing: FakeApi, folder: Path) -> None:
    """That would be to read all others."""
    check(willing, run_of(folder))
    reviews = [each.body["spec"] for each in willing.asked if each.path == REVIEWS]
    asked = [each["resourceAttributes"] for each in reviews]
    verbs = {each["verb"] for each in asked if each["resource"] == "secrets"}
    assert verbs == {"create", "get", "delete"}


def test_what_may_not_be_read_is_said_and_refuses_nothing(willing: FakeApi, folder: Path) -> None:
    willing.script("GET", f"/api/v1/{IN_NAMESPACE}", refused(403, "Forbidden"))
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/high"
    willing.script("GET", path, refused(403, "Forbidden"))
    said = check(willing, run_of(folder, "kubernetes.priority_class=high"))
    assert said == [
        f"not checked, since you may not read it: namespace {NAMESPACE}, PriorityClass high"
    ]


NAMED: Sequence[tuple[str, str, str]] = (
    (
        "kubernetes.volumes=[{name: data, mount: /data}]",
        "kubernetes.volumes.data",
        "PersistentVolumeClaim data",
    ),
    (
        "kubernetes.secrets={HF_TOKEN: {secret: hf, key: token}}",
        "kubernetes.secrets.HF_TOKEN",
        "Secret hf",
    ),
    ("kubernetes.image_pull_secrets=[pull]", "kubernetes.image_pull_secrets", "Secret pull"),
    ("kubernetes.service_account=runner", "kubernetes.service_account", "ServiceAccount runner"),
    ("kubernetes.priority_class=high", "kubernetes.priority_class", "PriorityClass high"),
    (
        "networks.lan.kubernetes={attachment: existing, definitions: r}",
        "networks.lan.kubernetes.definitions",
        "NetworkAttachmentDefinition r",
    ),
)


def test_a_pod_is_not_refused_for_an_account_that_is_named_as_missing(
    willing: FakeApi, folder: Path
) -> None:
    willing.script("POST", f"{CORE}/pods", refused(403, "Forbidden", "no such account"))
    text = refusal_of(willing, run_of(folder, "kubernetes.service_account=gone"))
    assert text.startswith("kubernetes.service_account: there is no ServiceAccount gone")


@pytest.mark.parametrize(("override", "place", "words"), NAMED)
def test_what_an_experiment_names_and_is_not_there_is_said(
    willing: FakeApi, folder: Path, override: str, place: str, words: str
) -> None:
    run = run_of(folder, override)
    assert f"{place}: there is no {words}" in refusal_of(willing, run)
    [named] = named_objects(run.settings, run.attachments.interfaces, NAMESPACE)
    willing.script("GET", f"{named.resource.path(named.namespace)}/{named.name}", Answer())
    assert check(willing, run) == []


@pytest.mark.parametrize(
    "override",
    [
        "kubernetes.volumes=[{name: data, mount: /data, workloads: [other]}]",
        "kubernetes.volumes=[{name: text, mount: /text, config_map: words, workloads: [other]}]",
        "kubernetes.secrets={HF_TOKEN: {secret: hf, key: token, workloads: [other]}}",
    ],
)
def test_what_no_pod_of_the_run_asks_for_need_not_be_there(
    willing: FakeApi, folder: Path, override: str
) -> None:
    """It is of a workload that runs elsewhere, or not this time."""
    metrics = "metrics: [{name: step_time_s, regex: 't=([0-9.]+)'}]"
    mine = f"{{kind: command, name: mine, command: [train.py], {metrics}}}"
    other = f"{{kind: command, name: other, command: [train.py], {metrics}, platforms: []}}"
    assert check(willing, run_of(folder, f"workloads=[{mine}, {other}]", override)) == []


def test_a_secrets_value_is_not_asked_for(willing: FakeApi, folder: Path) -> None:
    path = f"{CORE}/secrets/hf"
    willing.script("GET", path, Answer())
    check(willing, run_of(folder, "kubernetes.secrets={HF_TOKEN: {secret: hf, key: token}}"))
    [asked] = [each for each in willing.asked if each.path == path]
    assert "as=PartialObjectMetadata" in asked.headers["Accept"]


def test_a_queue_is_looked_for_in_the_version_that_its_operator_has(
    willing: FakeApi, folder: Path
) -> None:
    """Kueue gives v1beta1 up."""
    willing.script("GET", "/apis/kueue.x-k8s.io/v1beta1", refused(404, "NotFound"))
    group = {"versions": [{"version": "v1beta2"}]}
    willing.script("GET", "/apis/kueue.x-k8s.io", Answer(body=group))
    queues = {"resources": [{"name": "localqueues"}]}
    willing.script("GET", "/apis/kueue.x-k8s.io/v1beta2", Answer(body=queues))
    run = run_of(folder, "kubernetes.queue={kueue: gpus}")
    assert "there is no LocalQueue gpus" in refusal_of(willing, run)
    willing.script("GET", f"/apis/kueue.x-k8s.io/v1beta2/{IN_NAMESPACE}/localqueues/gpus", Answer())
    assert check(willing, run) == []


def test_networks_without_multus_are_said(willing: FakeApi, folder: Path) -> None:
    willing.script("GET", "/apis/k8s.cni.cncf.io/v1", refused(404, "NotFound"))
    existing = "networks.lan.kubernetes={attachment: existing, definitions: r}"
    for override in (existing, NIC):
        text = refusal_of(willing, run_of(folder, override))
        assert "this cluster has no network-attachment-definitions.k8s.cni.cncf.io" in text


def test_a_quota_and_a_webhooks_words_are_said_together(willing: FakeApi, folder: Path) -> None:
    quota = refused(403, "Forbidden", "exceeded quota: small, requested: count/configmaps=1")
    willing.script("POST", f"{CORE}/configmaps", quota)
    wrong = refused(422, "Invalid", 'admission webhook "v" denied: spec.x is wrong')
    willing.script("POST", JOBS, wrong)
    run = run_of(folder)
    text = refusal_of(willing, run)
    assert f"ConfigMap {run.name}-program, " in text
    assert ": making it: a quota is used up (create configmaps in namespace" in text
    assert "kubectl describe quota" in text
    assert f"PyTorchJob {run.name}: making it: the cluster refuses" in text
    assert "spec.x is wrong" in text


def test_a_quota_that_refuses_several_objects_is_said_once(willing: FakeApi, folder: Path) -> None:
    """Each refusal begins with its object; another quota, or another lack of it, is another one."""

    def answer(asked: Asked) -> Answer:
        kind, name = asked.path.rpartition("/")[2], asked.body["metadata"]["name"]
        limit = f"requested: count/{kind}=1, used: count/{kind}=4, limited: count/{kind}=4"
        message = f'{kind} "{name}" is forbidden: exceeded quota: small, {limit}'
        return refused(403, "Forbidden", message)

    for kind in ("configmaps", "secrets"):
        willing.script("POST", f"{CORE}/{kind}", answer)
    run = run_of(folder)
    text = refusal_of(willing, run)
    made = [each for each in objects(run).own if each["kind"] == "ConfigMap"]
    assert len(made) > 1
    places = ", ".join(f"ConfigMap {each['metadata']['name']}" for each in made)
    assert f"{places}: making it: a quota is used up (create configmaps in namespace" in text
    assert text.count("exceeded quota: small, requested: count/configmaps=1") == 1
    assert text.count("exceeded quota: small, requested: count/secrets=1") == 1


def test_what_outlives_runs_needs_no_right_to_make_it_where_it_is_there(
    willing: FakeApi, folder: Path
) -> None:
    """An administrator made the claim, and its filling."""
    run = run_of(folder, *FILLED)
    willing.script("POST", REVIEWS, may(("create", "persistentvolumeclaims"), ("create", "jobs")))
    text = refusal_of(willing, run)
    assert "you may not create jobs.batch, persistentvolumeclaims in namespace" in text
    for each in objects(run).lasting:
        folder_of = BATCH_JOBS if each["kind"] == "Job" else f"{CORE}/persistentvolumeclaims"
        willing.script("GET", f"{folder_of}/{each['metadata']['name']}", Answer())
    assert check(willing, run) == []


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (None, "this cluster has no pytorchjobs.kubeflow.org"),
        (["v1beta2"], "of version v1: kubeflow.org is there in v1beta2"),
    ],
)
def test_an_operator_that_is_missing_is_told_from_one_of_another_version(
    fake: FakeApi, versions: list[str] | None, words: str
) -> None:
    if versions is not None:
        group = {"versions": [{"version": version} for version in versions]}
        fake.script("GET", "/apis/kubeflow.org", Answer(body=group))
    with pytest.raises(PlatformError, match=re.escape(words)):
        choose_kind(fake.api(), "pytorchjob")


def test_revoked_credentials_end_the_checks_with_a_hint(willing: FakeApi, folder: Path) -> None:
    willing.script("POST", REVIEWS, refused(401, "Unauthorized"))
    assert "log in again" in refusal_of(willing, run_of(folder))


def test_a_server_that_comes_up_is_waited_for(
    willing: FakeApi, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a job that was lost is made again in mid run."""
    monkeypatch.setattr(api_module, "AGAIN_AFTER_S", (0.005,))
    busy = refused(503, "ServiceUnavailable")
    space = f"/api/v1/{IN_NAMESPACE}"
    willing.script("GET", space, busy, Answer(body={"metadata": {"name": NAMESPACE}}))
    willing.script("POST", REVIEWS, busy, may())
    crossed = refused(409, "Conflict", "Operation cannot be fulfilled on resourcequotas")
    willing.script("POST", JOBS, crossed, Answer(status=201))
    kinds = Answer(body={"resources": [{"name": "pytorchjobs"}]})
    willing.script("GET", "/apis/kubeflow.org/v1", busy, kinds)
    claim = f"{space}/persistentvolumeclaims/data"
    willing.script("GET", claim, busy, Answer())
    said = check(willing, run_of(folder, "kubernetes.volumes=[{name: data, mount: /data}]"))
    assert len(said) == 5
    assert willing.count("GET", claim) == 2


def test_a_pod_that_would_be_refused_is_said_before_the_job_is_made(
    willing: FakeApi, folder: Path
) -> None:
    """Its job is taken, since that makes no pod in a dry run."""
    violates = refused(403, "Forbidden", 'violates PodSecurity "restricted:latest"')
    willing.script("POST", f"{CORE}/pods", violates)
    text = refusal_of(willing, run_of(folder))
    assert text.startswith("its pods: making one: ")
    assert "violates PodSecurity" in text
    [told] = [each for each in willing.asked if each.path.endswith("/pods")]
    assert told.query["dryRun"] == "All"
    assert told.body["spec"]["containers"][0]["resources"]["limits"]


def test_without_the_right_to_create_pods_they_are_not_checked_and_nothing_is_refused(
    willing: FakeApi, folder: Path
) -> None:
    willing.script("POST", REVIEWS, may(("create", "pods")))
    [said] = check(willing, run_of(folder))
    assert "seen with the job alone: you may not create pods, which a run does not need" in said
    assert willing.count("POST", f"{CORE}/pods") == 0
