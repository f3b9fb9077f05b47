"""Is a job of an earlier life of the tool waited for where its pods still come, and heard where
they don't? And is its successor made beside it?"""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    Answer,
    FakeApi,
    event_line,
    held,
    listed,
    refused,
)
from tests.platforms.kubernetes.test_ownership import owned_pod, place_of
from tests.platforms.kubernetes.test_pod_warnings import EVENTS
from tests.platforms.launches import make_folders
from tests.running.rendering.experiments import EXPERIMENT
from tests.running.rendering.runs import run_of

from broadgauge.manifests.run_job import RunJob
from broadgauge.messages.leader import TakeJobs
from broadgauge.platforms.kubernetes import allocation, running_job
from broadgauge.platforms.kubernetes.allocation import PodsAllocation
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.job_place import STATE_FILE, place_file, run_label
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.platforms.kubernetes.upcoming import chosen_kind
from broadgauge.platforms.led.handle import LinkLost, NoLeader
from broadgauge.running.experiments import load_text
from broadgauge.running.rendering.experiment import ON_KUBERNETES
from broadgauge.specs.errors import (
    ExitCode,
    InputError,
    PlatformError,
    RunFolderError,
    UncollectedError,
)
from broadgauge.specs.kubernetes.settings import JobKind, Kubernetes
from broadgauge.specs.secrets.values import SecretText

JOB = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/r"
SECRET = "environment={WANDB_API_KEY: {from_environment: true}}"
UNPLACED = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
WAITING = {"phase": "Pending", "conditions": [UNPLACED]}
RUNNING, FAILED = {"phase": "Running"}, {"phase": "Failed", "message": "low on memory"}
NO_IMAGE = {"name": "node", "state": {"waiting": {"reason": "InvalidImageName", "message": "x:"}}}
DOOMED = {"phase": "Pending", "containerStatuses": [NO_IMAGE]}
EVENTS_HINT = "`kubectl get events --namespace training` still has what was said of its pods"
BACK_OFF = {"name": "node", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "x:"}}}
PULLING = {"phase": "Pending", "containerStatuses": [BACK_OFF]}


def pods_of(*statuses: dict[str, Any]) -> list[dict[str, Any]]:
    return [owned_pod(f"r-{i}", i) | {"status": status} for i, status in enumerate(statuses)]


def job(
    condition: str | None = None, *, why: str = "BackoffLimitExceeded", **metadata: Any
) -> Answer:
    found = [{"type": condition, "status": "True", "reason": why}]
    about = {"name": "r", "uid": "u", **metadata}
    return Answer(body={"metadata": about, "status": {"conditions": found if condition else []}})


GONE = refused(404, "NotFound")


class Cluster:
    """With one job of the run, and the allocation that finds it in its folder."""

    def __init__(
        self, fake: FakeApi, folder: Path, monkeypatch: pytest.MonkeyPatch, *overrides: str
    ) -> None:
        (folder / "train.py").touch()
        self.fake, self.contexts = fake, list[str | None]()
        self.shown, self.said = list[str](), list[str]()
        self.secrets: dict[str, SecretText] = {}
        place_file(folder / "logs").write(place_of(uid="u", num_pods=2))
        monkeypatch.setattr(Api, "connect", self._connect)
        fake.script("GET", EVENTS, listed())
        words = (SECRET, ON_KUBERNETES, *overrides)
        loaded = load_text(EXPERIMENT, folder / "experiment.yaml", words)

        def make_job(*, kind: JobKind, namespace: str | None, run: str, name: str) -> RunJob:
            del namespace, run
            return run_of(loaded, kind, name, program=b"zip")

        self.case = run_of(loaded).cases[0]
        self.allocation = PodsAllocation(
            make_folders(folder), loaded.experiment, make_job, self.secrets
        )
        self.allocation.tell_to(self.said.append)

    def _connect(self, context: str | None) -> Api:
        self.contexts.append(context)
        return self.fake.api()

    def has(self, *jobs: Answer, pods: list[dict[str, Any]], watch: Answer | None = None) -> None:
        """The job, at each look; the last for ever."""
        self.fake.script("GET", JOB, *jobs)
        self.fake.script("GET", PODS, listed(*pods))
        self.fake.script("WATCH", PODS, *([watch] if watch else []), held()[0])

    def has_batch(self) -> None:
        """As every cluster."""
        found = Answer(body={"resources": [{"name": "jobs"}]})
        self.fake.script("GET", "/apis/batch/v1", found)

    def wait(self) -> None:
        self.allocation.wait_for_found(self.shown.append)


@pytest.fixture
def cluster(fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(fake, tmp_path, monkeypatch)


def test_pods_that_still_come_are_waited_for(cluster: Cluster) -> None:
    first, second = pods_of(RUNNING, RUNNING)
    seen = threading.Event()

    def show(text: str) -> None:
        cluster.shown.append(text)
        seen.set()

    come = [seen, event_line("MODIFIED", first), event_line("MODIFIED", second)]
    cluster.has(job(), pods=pods_of(WAITING, WAITING), watch=Answer(stream=come))
    cluster.allocation.wait_for_found(show)
    assert cluster.shown[0] == "2 pods waiting for a node (0/3 nodes are available)"


@pytest.mark.parametrize(
    ("found", "pods"),
    [
        pytest.param(job(), pods_of(RUNNING, WAITING), id="it leads"),
        pytest.param(job(), pods_of(WAITING, FAILED), id="a pod has failed"),
        pytest.param(job("Failed"), pods_of(WAITING), id="it has failed"),
        pytest.param(job("Failed"), [], id="it has failed, and its pods are gone"),
        pytest.param(job("Complete"), [], id="it is done, and its pods are gone"),
        pytest.param(job(deletionTimestamp="now"), pods_of(WAITING), id="it is being deleted"),
        pytest.param(job(uid="another"), [], id="another has its name"),
        pytest.param(GONE, [], id="it is gone"),
    ],
)
def test_what_has_begun_or_will_not_begin_any_more_is_not_waited_for(
    cluster: Cluster, found: Answer, pods: list[dict[str, Any]]
) -> None:
    """Its log, or its volume, has what it measured."""
    cluster.has(found, pods=pods)
    cluster.wait()
    assert cluster.shown == []


def test_one_that_fails_while_it_is_waited_for_is_heard_then(cluster: Cluster) -> None:
    gone = [event_line("DELETED", each) for each in pods_of(WAITING, WAITING)]
    found = (job(), job(), job("Failed"))
    seen = threading.Event()  # a job that is found without its pods is asked again
    cluster.has(*found, pods=pods_of(WAITING, WAITING), watch=Answer(stream=[seen, *gone]))
    cluster.allocation.wait_for_found(lambda _: seen.set())
    assert "BackoffLimitExceeded" in cluster.said[-1]


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(GONE, id="it is gone"),
        pytest.param(job(deletionTimestamp="now"), id="it is being deleted"),
        pytest.param(job(uid="another"), id="another has its name"),
    ],
)
def test_one_that_is_deleted_while_it_is_waited_for_is_waited_for_no_longer(
    cluster: Cluster, late: Answer
) -> None:
    """Whatever else is there by its name makes none of its pods."""
    cluster.has(job(), job(), late, pods=[])
    cluster.wait()
    assert cluster.said == ["job r is gone: somebody deleted it"]


def test_one_whose_pods_can_not_come_up_ends_the_run(cluster: Cluster) -> None:
    cluster.has(job(), pods=pods_of(DOOMED, DOOMED))
    with pytest.raises(PlatformError, match="InvalidImageName") as raised:
        cluster.wait()
    assert not isinstance(raised.value, UncollectedError)


@pytest.mark.parametrize(
    ("status", "words", "hint"),
    [
        (WAITING, "2 pods waiting for a node (0/3 nodes are available)", EVENTS_HINT),
        (PULLING, "2 pods pulling its image (ImagePullBackOff: x)", "image_pull_secrets"),
    ],
)
def test_one_whose_pods_do_not_come_up_in_the_users_limit_ends_the_run(
    fake: FakeApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    status: dict[str, Any],
    words: str,
    hint: str,
) -> None:
    """With what was last said of them, and what to do about that."""
    cluster = Cluster(fake, tmp_path, monkeypatch, "kubernetes.pending_limit_s=0.1s")
    cluster.has(job(), pods=pods_of(status, status))
    with pytest.raises(PlatformError) as raised:
        cluster.wait()
    assert words in raised.value.message
    assert hint in (raised.value.hint or "")
    assert raised.value.exit_code is ExitCode.PLATFORM_REFUSED
    assert not isinstance(raised.value, UncollectedError)
    assert cluster.shown == [words]


def test_one_that_may_not_be_looked_at_any_more_is_left(cluster: Cluster) -> None:
    cluster.fake.script("GET", PODS, refused(403, "Forbidden"))
    with pytest.raises(UncollectedError, match="watching the pods"):
        cluster.wait()


def test_one_of_which_nobody_knows_whether_it_is_there_is_left(cluster: Cluster) -> None:
    """Its pods may be made a minute later."""
    cluster.has(refused(503, "ServiceUnavailable"), pods=[])
    with pytest.raises(UncollectedError, match="looking at job r in namespace training"):
        cluster.wait()


def test_pods_that_are_not_known_yet_are_no_reason_to_give_it_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is slow has not said that there are none."""
    monkeypatch.setattr(running_job, "SEEN_LIMIT_S", 0.1)
    cluster.has(job(), pods=[])
    leader = cluster.allocation.find()
    assert leader is not None
    with pytest.raises(NoLeader, match="has no pod that leads it"):
        leader.attach(-1)
    cluster.fake.script("GET", PODS, refused(503, "ServiceUnavailable"))
    again = RunningJob(cluster.fake.api(), leader.place, leader.file, leader.log_folder, print)
    with pytest.raises(LinkLost, match="were not listed"):
        again.attach(-1)


@pytest.mark.parametrize(
    ("found", "is_gone"),
    [
        (job(), False),
        (job("Failed"), False),
        (refused(503, "ServiceUnavailable"), False),
        (job(deletionTimestamp="now"), True),
        (job(uid="another"), True),
        (GONE, True),
    ],
)
def test_a_job_that_makes_no_pods_any_more_is_gone(
    cluster: Cluster, found: Answer, *, is_gone: bool
) -> None:
    """Also while a node that is away keeps a pod of it, and so the job."""
    cluster.has(found, pods=[])
    leader = cluster.allocation.find()
    assert leader is not None
    assert leader.is_gone() == is_gone


@pytest.mark.parametrize(
    ("found", "over"),
    [
        (job(), None),
        (job("Failed"), None),
        (refused(503, "ServiceUnavailable"), None),
        (job("Failed", why="DeadlineExceeded"), "DeadlineExceeded"),
        (job("FailureTarget", why="DeadlineExceeded"), "DeadlineExceeded"),
        (job(deletionTimestamp="now"), "was deleted by somebody"),
        (GONE, "was deleted by somebody"),
    ],
)
def test_who_ends_a_job_by_a_limit_or_by_hand_wants_no_other(
    cluster: Cluster, found: Answer, over: str | None
) -> None:
    cluster.has(found, pods=[])
    assert cluster.allocation.find() is not None
    why = cluster.allocation.why_over()
    assert (why is None) if over is None else (over in str(why))


@pytest.mark.parametrize("found", [GONE, job("Failed", why="DeadlineExceeded")])
def test_a_job_that_was_over_when_it_was_found_has_a_successor(
    cluster: Cluster, found: Answer
) -> None:
    """What it kept is heard first; whoever resumes then wants the rest."""
    cluster.has(found, pods=[])
    cluster.wait()
    assert cluster.allocation.why_over() is None
    cluster.allocation.forget()


def test_a_job_of_which_no_uid_is_known_and_that_is_gone_has_a_successor(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The tool was killed before it had made it."""
    place_file(tmp_path / "logs").write(place_of())
    cluster.has(GONE, pods=[])
    cluster.wait()
    assert cluster.allocation.why_over() is None


def test_a_job_that_is_over_later_has_none(cluster: Cluster) -> None:
    cluster.has(job(), job(), GONE, pods=pods_of(RUNNING, RUNNING))
    cluster.wait()
    assert cluster.allocation.why_over() is None
    assert "was deleted by somebody" in str(cluster.allocation.why_over())


def test_a_job_that_says_late_why_it_ended_is_waited_for(cluster: Cluster) -> None:
    """Its pods end first."""
    late = (job(), job(), job("FailureTarget", why="DeadlineExceeded"))
    cluster.has(*late, pods=pods_of(RUNNING, FAILED))
    leader = cluster.allocation.find()
    assert leader is not None
    assert leader.first_pod()  # the watch has begun
    assert "DeadlineExceeded" in str(cluster.allocation.why_over())


def test_who_ended_a_job_is_known_also_once_we_have_deleted_it(cluster: Cluster) -> None:
    cluster.has(job("Failed", why="DeadlineExceeded"), GONE, pods=[])
    leader = cluster.allocation.find()
    assert leader is not None
    leader.stop()
    assert "DeadlineExceeded" in str(cluster.allocation.why_over())


def test_a_job_that_we_ended_was_deleted_by_nobody_else(cluster: Cluster) -> None:
    """A leader whose disk is full is stopped, and has a successor."""
    cluster.has(job(), GONE, pods=[])
    leader = cluster.allocation.find()
    assert leader is not None
    leader.stop()
    assert cluster.allocation.why_over() is None


def test_a_successor_is_made_in_the_cluster_of_the_job_before_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Whatever the kubeconfig's context is by now."""
    before = replace(place_of(uid="u", num_pods=2), context="theirs")
    place_file(tmp_path / "logs").write(before)
    cluster.has_batch()
    assert cluster.allocation.find() is not None
    cluster.allocation.forget()
    assert cluster.allocation.find() is None
    cluster.allocation.seats_of(cluster.case)
    assert cluster.contexts == ["theirs", "theirs"]
    chosen = chosen_kind(Kubernetes(image="x", namespace="mine", job="job"), before)
    assert chosen.namespace == NAMESPACE


def test_a_successor_without_a_secret_of_the_run_is_refused_before_it_is_made(
    cluster: Cluster,
) -> None:
    cluster.has_batch()
    with pytest.raises(InputError, match="`WANDB_API_KEY` is not set in your environment"):
        cluster.allocation.start((), cluster.shown.append)
    assert {asked.method for asked in cluster.fake.asked} == {"GET"}


def test_what_the_cluster_would_refuse_ends_the_run_before_anything_is_made(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.secrets["WANDB_API_KEY"] = SecretText("key")
    place_file(tmp_path / "logs").forget()
    cluster.has_batch()
    with pytest.raises(PlatformError, match="there is no namespace training"):
        cluster.allocation.start((), cluster.shown.append)
    assert {asked.method for asked in cluster.fake.asked} == {"GET"}
    assert place_file(tmp_path / "logs").read() is None


def test_jobs_count_as_given_once_the_server_has_taken_them(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Else nobody gives them again, and the tool waits for what its leader never heard of."""
    orders, jobs = f"{CONFIG_MAPS}/r-orders", TakeJobs(generation=1, jobs=())
    cluster.has(job(), pods=[])
    done = Answer(body={"metadata": {"name": "r-orders"}})
    cluster.fake.script("PATCH", orders, refused(503, "ServiceUnavailable"), done)
    leader, file = cluster.allocation.find(), place_file(tmp_path / "logs")
    assert leader is not None
    with pytest.raises(LinkLost, match="can't be told anything"):
        leader.tell(jobs)
    assert file.read() == leader.place == place_of(uid="u", num_pods=2, next_order=2)
    leader.tell(jobs)
    known = place_of(uid="u", num_pods=2, next_order=3, generation=1)
    assert file.read() == leader.place == known
    told = [asked.body["binaryData"] for asked in cluster.fake.asked if asked.path == orders]
    assert [next(key for key in keys if keys[key]) for keys in told] == [
        "order-0001.json.gz",
        "order-0002.json.gz",
    ]


def test_a_successor_is_made_there_also_by_a_later_life_of_the_tool(
    cluster: Cluster, tmp_path: Path
) -> None:
    place_file(tmp_path / "logs").write(replace(place_of(uid="u"), context="theirs", is_gone=True))
    cluster.has_batch()
    assert cluster.allocation.find() is None
    cluster.allocation.seats_of(cluster.case)
    assert cluster.contexts == ["theirs"]


def test_a_job_of_the_runs_name_that_is_there_already_is_not_deleted(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run folder was put back from a copy, say: it leads the run, and has measured."""
    cluster.secrets["WANDB_API_KEY"] = SecretText("key")
    place_file(tmp_path / "logs").forget()
    cluster.has_batch()
    monkeypatch.setattr(allocation, "check_before", lambda *asked: None)
    taken = refused(409, "AlreadyExists")
    cluster.fake.script("POST", CONFIG_MAPS, taken)
    program = f"{run_label('small', str(tmp_path / 'logs'))}-program"
    there = Answer(body={"metadata": {"name": program}})
    cluster.fake.script("GET", f"{CONFIG_MAPS}/{program}", there)
    with pytest.raises(PlatformError, match="it is there already"):
        cluster.allocation.start((), cluster.shown.append)
    assert {asked.method for asked in cluster.fake.asked} == {"GET", "POST"}
    found = place_file(tmp_path / "logs").read()
    assert found is not None  # `run --resume` listens to it
    assert not found.is_gone


@pytest.mark.parametrize("text", ["", "{", "[]", '{"context": 1}', "\udc80"])
def test_a_file_that_can_not_be_read_is_not_no_job(
    cluster: Cluster, tmp_path: Path, text: str
) -> None:
    """The disk was full, or the power was gone: another job beside it would disturb it."""
    (tmp_path / "logs" / STATE_FILE).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RunFolderError, match="says where the run goes on, and can't be read"):
        cluster.allocation.find()
