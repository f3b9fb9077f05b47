"""Is what a run makes made once, and is nothing deleted but what bears both of its labels?"""

from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    SECRETS,
    Answer,
    Asked,
    FakeApi,
    listed,
    refused,
)

from broadgauge.manifests.names import JOB, MANAGER, OWNER, RUN
from broadgauge.platforms.kubernetes import api as api_module
from broadgauge.platforms.kubernetes import owned
from broadgauge.platforms.kubernetes.job_place import this_owner
from broadgauge.platforms.kubernetes.owned import create_all, delete_all
from broadgauge.platforms.kubernetes.resources import JOBS, PYTORCH_JOBS
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.kubernetes.settings import MANAGED_BY

CROSSED = (
    'Operation cannot be fulfilled on resourcequotas "small": the object has been modified; please '
    "apply your changes to the latest version and try again"
)
OURS = {MANAGED_BY: MANAGER, RUN: "demo-1"}
SECRET = f"{SECRETS}/demo-1-secrets"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "AGAIN_AFTER_S", (0.005,))
    monkeypatch.setattr(owned, "LOOK_EVERY_S", 0.005)


def config_map(name: str = "demo-orders", labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "labels": OURS if labels is None else labels,
        },
    }


def make(fake: FakeApi) -> list[str]:
    said: list[str] = []
    create_all(fake.api(), NAMESPACE, [config_map()], said.append)
    return said


@pytest.mark.parametrize(
    "trouble",
    [
        Answer(status=429, headers={"Retry-After": "0"}, body={"message": "busy"}),
        refused(500, "InternalError"),
        refused(503, "ServiceUnavailable"),
        refused(409, "Conflict", CROSSED),
    ],
)
def test_a_server_that_is_busy_is_asked_again(fake: FakeApi, trouble: Answer) -> None:
    fake.script("POST", CONFIG_MAPS, trouble, Answer(status=201, body=config_map()))
    assert len(make(fake)) == 1
    assert fake.count("POST", CONFIG_MAPS) == 2


def test_a_quota_that_others_never_stop_changing_is_said(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned, "CREATE_LIMIT_S", 0.5)  # many times what one try takes
    fake.script("POST", CONFIG_MAPS, refused(409, "Conflict", CROSSED))
    with pytest.raises(PlatformError, match="the object has been modified"):
        make(fake)
    assert fake.count("POST", CONFIG_MAPS) > 1


TRAIN_JOBS = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}/trainjobs"
UNSEEN = refused(
    403, "Forbidden", 'admission webhook denied: spec.runtimeRef: TrainingRuntime "demo" not found'
)


def test_a_trainjob_is_made_once_its_webhook_knows_its_runtime(fake: FakeApi) -> None:
    job = config_map("demo") | {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    fake.script("POST", TRAIN_JOBS, UNSEEN, UNSEEN, Answer(status=201, body=job))
    assert create_all(fake.api(), NAMESPACE, [job], print) == (job,)
    assert fake.count("POST", TRAIN_JOBS) == 3


def test_a_runtime_that_is_not_there_is_said_after_a_while(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned, "RUNTIME_LIMIT_S", 0.02)
    job = config_map("demo") | {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    fake.script("POST", TRAIN_JOBS, *(UNSEEN,) * 100)
    with pytest.raises(PlatformError, match="not found"):
        create_all(fake.api(), NAMESPACE, [job], print)
    assert fake.count("POST", TRAIN_JOBS) > 1


def test_an_answer_that_was_lost_is_no_conflict_with_ourselves(fake: FakeApi) -> None:
    """It was stored, the connection broke, and it is asked for again."""
    lost = Answer(status=201, stream=[b'{"kind"'], is_cut=True)
    fake.script("POST", CONFIG_MAPS, lost, refused(409, "AlreadyExists"))
    fake.script("GET", f"{CONFIG_MAPS}/demo-orders", lambda _: Answer(body=fake.asked[0].body))
    make(fake)
    assert fake.count("POST", CONFIG_MAPS) == 2


def test_an_older_object_of_our_name_and_labels_is_not_taken_for_the_new_one(
    fake: FakeApi,
) -> None:
    """It has older orders."""
    older = config_map()
    older["metadata"]["annotations"] = {owned.CREATION: "0123456789abcdef"}
    fake.script("POST", CONFIG_MAPS, refused(409, "AlreadyExists", "demo-orders already exists"))
    fake.script("GET", f"{CONFIG_MAPS}/demo-orders", Answer(body=older))
    with pytest.raises(PlatformError, match="demo-orders already exists") as caught:
        make(fake)
    assert "broadgauge cleanup" in (caught.value.hint or "")


def test_each_creation_has_a_mark_of_its_own(fake: FakeApi) -> None:
    fake.script("POST", CONFIG_MAPS, lambda asked: Answer(status=201, body=asked.body))
    make(fake)
    make(fake)
    marks = {each.body["metadata"]["annotations"][owned.CREATION] for each in fake.asked}
    assert len(marks) == 2


def test_who_runs_it_stands_on_all_that_is_made_but_on_claims(fake: FakeApi) -> None:
    """A claim is there for all runs that name it. What else is annotated stays so."""
    claims = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    claim = config_map("data") | {"kind": "PersistentVolumeClaim"}
    body = config_map()
    body["metadata"]["annotations"] = {"theirs": "1"}
    for path in (CONFIG_MAPS, claims):
        fake.script("POST", path, lambda asked: Answer(status=201, body=asked.body))
    create_all(fake.api(), NAMESPACE, [body, claim], print)
    by_kind = {each.body["kind"]: each.body["metadata"] for each in fake.asked}
    assert (
        by_kind["ConfigMap"]["annotations"].items() >= {OWNER: this_owner(), "theirs": "1"}.items()
    )
    assert "annotations" not in by_kind["PersistentVolumeClaim"]


@pytest.mark.parametrize(
    "labels",
    [{}, {RUN: "demo-1"}, {MANAGED_BY: MANAGER}, {**OURS, RUN: "another"}, {**OURS, JOB: "before"}],
)
def test_another_ones_object_of_that_name_is_refused_and_kept(
    fake: FakeApi, labels: dict[str, str]
) -> None:
    fake.script("POST", CONFIG_MAPS, refused(409, "AlreadyExists", "demo-orders already exists"))
    fake.script("GET", f"{CONFIG_MAPS}/demo-orders", Answer(body=config_map(labels=labels)))
    with pytest.raises(PlatformError, match="demo-orders already exists"):
        make(fake)
    assert {each.method for each in fake.asked} == {"POST", "GET"}


def test_an_object_that_is_on_its_way_out_is_not_taken_for_ours(fake: FakeApi) -> None:
    there = config_map()
    there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    fake.script("POST", CONFIG_MAPS, refused(409, "AlreadyExists", "demo-orders already exists"))
    fake.script("GET", f"{CONFIG_MAPS}/demo-orders", Answer(body=there))
    with pytest.raises(PlatformError, match="demo-orders already exists"):
        make(fake)


class Stored:
    """Pods and ConfigMaps of a namespace, as an API server keeps, selects and deletes them."""

    def __init__(self, fake: FakeApi, *items: dict[str, Any]) -> None:
        self.items = {each["metadata"]["name"]: each for each in items}
        fake.script("GET", PODS, listed())
        fake.script("GET", CONFIG_MAPS, self._list)
        for name in self.items:
            fake.script("DELETE", f"{CONFIG_MAPS}/{name}", self._delete)

    def _list(self, asked: Asked) -> Answer:
        wanted = asked.query.get("labelSelector", "").split(",")
        found = [each for each in self.items.values() if _is_selected(each, wanted)]
        return listed(*found)

    def _delete(self, asked: Asked) -> Answer:
        del self.items[asked.path.rpartition("/")[2]]
        return Answer()


def _is_selected(item: dict[str, Any], wanted: list[str]) -> bool:
    labels = item["metadata"]["labels"]
    pairs = [each.partition("=") for each in wanted if each]
    return all(key in labels and (not sign or labels[key] == value) for key, sign, value in pairs)


THEIRS = [
    config_map("theirs-prefix", {"broadgauge.dev/other": "x"}),
    config_map("theirs-run", {RUN: "demo-1"}),
    config_map("theirs-manager", {MANAGED_BY: MANAGER}),
    config_map("another-run", {**OURS, RUN: "demo-2"}),
    config_map("demo-orders-copy", {}),
]


def test_only_what_bears_both_labels_is_deleted(fake: FakeApi) -> None:
    stored = Stored(fake, config_map("demo-orders"), config_map("demo-files"), *THEIRS)
    assert delete_all(fake.api(), NAMESPACE, "demo-1", lambda _: None)
    assert stored.items.keys() == {each["metadata"]["name"] for each in THEIRS}
    for each in fake.asked:
        if each.method == "GET" and each.path != SECRET:
            assert each.query["labelSelector"] == f"{MANAGED_BY}={MANAGER},{RUN}=demo-1"


def test_a_server_that_is_away_while_it_deletes_is_said_once(fake: FakeApi) -> None:
    stored = Stored(fake, config_map())
    fake.script("GET", PODS, refused(503, "ServiceUnavailable"), refused(500, "X"), listed())
    said: list[str] = []
    assert delete_all(fake.api(), NAMESPACE, "demo-1", said.append)
    assert stored.items == {}
    assert len(said) == 1


def test_what_was_deleted_meanwhile_is_no_trouble(fake: FakeApi) -> None:
    fake.script("GET", PODS, listed())
    fake.script("GET", CONFIG_MAPS, listed(config_map()), listed())
    assert delete_all(fake.api(), NAMESPACE, "demo-1", lambda _: None)  # its DELETE answers 404


@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_delete_is_told_and_does_not_say_that_it_is_gone(
    fake: FakeApi, status: int
) -> None:
    fake.script("GET", PODS, listed())
    fake.script("GET", CONFIG_MAPS, listed(config_map()))
    fake.script("DELETE", f"{CONFIG_MAPS}/demo-orders", refused(status, "No", "not you"))
    said: list[str] = []
    assert not delete_all(fake.api(), NAMESPACE, "demo-1", said.append)
    assert "not you" in said[0]


def test_what_does_not_go_is_said(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned, "DELETE_LIMIT_S", 0.2)
    body = config_map()
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    fake.script("GET", PODS, listed())
    fake.script("GET", CONFIG_MAPS, listed(body))
    said: list[str] = []
    assert not delete_all(fake.api(), NAMESPACE, "demo-1", said.append)
    assert "broadgauge cleanup" in said[0]
    assert {each.method for each in fake.asked} == {"GET"}  # it is asked to go once


def test_only_the_object_that_was_seen_is_deleted_and_none_that_has_its_name_since(
    fake: FakeApi,
) -> None:
    another = config_map(labels={})
    another["metadata"]["uid"] = "another"
    fake.script("GET", PODS, listed())
    fake.script("GET", CONFIG_MAPS, listed(config_map()), listed())
    fake.script("DELETE", f"{CONFIG_MAPS}/demo-orders", refused(409, "Conflict", "another uid"))
    assert delete_all(fake.api(), NAMESPACE, "demo-1", lambda _: None)
    [deleted] = [each for each in fake.asked if each.method == "DELETE"]
    assert deleted.body["preconditions"] == {"uid": "uid-of-demo-orders"}


def test_what_a_list_holds_without_our_labels_is_left_alone(fake: FakeApi) -> None:
    """Whatever answers: a selector that was not heeded deletes nothing."""
    fake.script("GET", PODS, listed())
    fake.script("GET", CONFIG_MAPS, listed(*THEIRS))
    assert delete_all(fake.api(), NAMESPACE, "demo-1", lambda _: None)
    assert {each.method for each in fake.asked} == {"GET"}


def test_an_object_without_a_uid_is_not_deleted(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned, "DELETE_LIMIT_S", 0.1)
    body = config_map()
    del body["metadata"]["uid"]
    fake.script("GET", PODS, listed())
    fake.script("GET", CONFIG_MAPS, listed(body))
    assert not delete_all(fake.api(), NAMESPACE, "demo-1", lambda _: None)
    assert {each.method for each in fake.asked} == {"GET"}


@pytest.mark.parametrize(("path", "verb"), [(PODS, "list"), (CONFIG_MAPS, "list"), (SECRET, "get")])
def test_what_may_not_be_looked_at_any_more_is_not_said_to_be_gone(
    fake: FakeApi, path: str, verb: str
) -> None:
    fake.script("GET", PODS, listed())
    fake.script("GET", path, refused(403, "Forbidden"))
    said: list[str] = []
    assert not delete_all(fake.api(), NAMESPACE, "demo-1", said.append)
    assert f"you may not {verb}" in said[0]


def test_pods_that_may_not_be_deleted_are_waited_for(fake: FakeApi) -> None:
    """They go with their job: the least Role gives no right to delete them."""
    left = config_map("demo-1-0", {**OURS, JOB: "demo-1"})
    about = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo-1", "uid": "u"}
    left["metadata"]["ownerReferences"] = [about | {"controller": True}]
    fake.script("GET", PODS, listed(left), listed(left), listed())
    fake.script("DELETE", f"{PODS}/demo-1-0", refused(403, "Forbidden", "you cannot delete pods"))
    said: list[str] = []
    assert delete_all(fake.api(), NAMESPACE, "demo-1", said.append)
    assert said == []
    assert fake.count("DELETE", f"{PODS}/demo-1-0") == 2


def test_a_job_that_may_not_be_listed_any_more_is_not_said_to_be_gone(fake: FakeApi) -> None:
    """Who may not list another kind had no right to make it."""
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    fake.script("GET", PODS, listed())
    fake.script("GET", jobs, refused(403, "Forbidden"))
    said: list[str] = []
    assert delete_all(fake.api(), NAMESPACE, "demo-1", said.append, PYTORCH_JOBS)
    assert not delete_all(fake.api(), NAMESPACE, "demo-1", said.append, JOBS)
    assert "you may not list jobs.batch" in said[0]


def test_what_is_seen_goes_also_where_not_all_may_be_looked_at(fake: FakeApi) -> None:
    """Pods cost; what is left is said."""
    stored = Stored(fake, config_map())
    fake.script("GET", SECRET, refused(403, "Forbidden"))
    said: list[str] = []
    assert not delete_all(fake.api(), NAMESPACE, "demo-1", said.append)
    assert stored.items == {}
    assert "you may not get secrets" in said[0]


def secret_of(job: str, labels: dict[str, str]) -> Answer:
    return Answer(body={"metadata": {"name": f"{job}-secrets", "uid": job, "labels": labels}})


GONE = refused(404, "NotFound")


def test_secrets_are_found_by_their_jobs_and_no_value_is_fetched(fake: FakeApi) -> None:
    """A successor's, too; before what tells of its job is deleted."""
    stored = Stored(fake, config_map("demo-orders", {**OURS, JOB: "demo-1-r1"}))
    none = {"kind": "PartialObjectMetadataList", "metadata": {}, "items": None}
    fake.script("GET", PODS, Answer(body=none))
    later = f"{SECRETS}/demo-1-r1-secrets"
    for path, job in ((SECRET, "demo-1"), (later, "demo-1-r1")):
        fake.script("GET", path, secret_of(job, OURS), GONE)
        fake.script("DELETE", path, Answer(body={}))
    assert delete_all(fake.api(), NAMESPACE, "demo-1", [].append)
    assert stored.items == {}
    deleted = [each.path for each in fake.asked if each.method == "DELETE"]
    assert deleted == [SECRET, later, f"{CONFIG_MAPS}/demo-orders"]
    asked = [each for each in fake.asked if each.path in (SECRET, later) and each.method == "GET"]
    assert all("as=PartialObjectMetadata" in each.headers["Accept"] for each in asked)
    assert not any(each.path == SECRETS for each in fake.asked)


def test_a_secret_that_only_has_the_name_is_left_alone(fake: FakeApi) -> None:
    fake.script("GET", PODS, listed())
    fake.script("GET", SECRET, secret_of("demo-1", {RUN: "demo-1"}))
    assert delete_all(fake.api(), NAMESPACE, "demo-1", [].append)
    assert {each.method for each in fake.asked} == {"GET"}
