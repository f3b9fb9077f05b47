"""Does an order reach its leader, and what is said where it can't? Is a lost leader's job ended?"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.manifests.requests import experiment_of
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    SECRETS,
    Answer,
    FakeApi,
    held,
    listed,
    refused,
)
from tests.platforms.kubernetes.test_api_rights import SHUT_OUT
from tests.platforms.kubernetes.test_ownership import OURS, owned_pod, place_of

from broadgauge.manifests.config_maps import FIRST_ORDERS_KEY
from broadgauge.messages.leader import Attach, TakeJobs
from broadgauge.platforms.kubernetes import allocation as allocation_module
from broadgauge.platforms.kubernetes import owned
from broadgauge.platforms.kubernetes.allocation import PodsAllocation
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.job_place import PlaceFile
from broadgauge.platforms.kubernetes.running_job import RunningJob, order_key
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.handle import LinkLost
from broadgauge.specs.errors import PlatformError

ORDERS = f"{CONFIG_MAPS}/r-orders"
JOB = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
NEVER = [(403, "Forbidden"), (404, "NotFound"), (413, "RequestEntityTooLarge"), (422, "Invalid")]


class Told:
    """A job whose first pod runs, and what was said of it."""

    def __init__(self, fake: FakeApi, folder: Path) -> None:
        self.fake, self.said = fake, list[str]()
        answer, self.end = held()
        fake.script("GET", PODS, listed(owned_pod("r-0", 0)))
        fake.script("WATCH", PODS, answer)
        fake.script("PATCH", ORDERS, Answer(body={}))
        fake.script("PATCH", f"{PODS}/r-0", Answer(body={}))
        place = place_of(uid="u", num_pods=1)
        self.job = RunningJob(fake.api(), place, PlaceFile(folder), folder, self.said.append)

    def tell(self) -> None:
        self.job.tell(TakeJobs(generation=1, jobs=()))


@pytest.fixture
def told(fake: FakeApi, tmp_path: Path) -> Iterator[Told]:
    found = Told(fake, tmp_path)
    yield found
    found.end.set()
    found.job.watch.close()


def test_an_order_is_put_down_and_the_pod_is_told_to_look(told: Told) -> None:
    told.tell()
    assert told.fake.count("PATCH", ORDERS) == told.fake.count("PATCH", f"{PODS}/r-0") == 1
    assert told.said == []


def test_new_jobs_take_the_room_of_all_orders_before_them(told: Told) -> None:
    """A question does not: a leader that begins anew must find its jobs."""
    told.job.tell(Attach(after=7))
    told.tell()
    told.tell()
    patched = [
        {key: data is not None for key, data in each.body["binaryData"].items()}
        for each in told.fake.asked
        if each.path == ORDERS
    ]
    one, two, three = map(order_key, (1, 2, 3))
    first = order_key(0)
    assert first == FIRST_ORDERS_KEY
    assert patched == [
        {one: True},
        {first: False, one: False, two: True},
        {first: False, one: False, two: False, three: True},
    ]


@pytest.mark.parametrize(("status", "reason"), NEVER)
def test_what_is_never_taken_is_an_error(told: Told, status: int, reason: str) -> None:
    told.fake.script("PATCH", ORDERS, refused(status, reason))
    told.fake.script("GET", f"{JOB}/r", Answer(body=LEFT))
    with pytest.raises(PlatformError, match="telling job r in namespace training what to do"):
        told.tell()


def test_a_job_that_went_with_its_orders_is_lost_and_no_error(told: Told) -> None:
    told.fake.script("PATCH", ORDERS, refused(404, "NotFound"))
    with pytest.raises(LinkLost, match="can't be told anything"):
        told.tell()


def test_what_may_be_taken_later_is_tried_again_by_who_tells(told: Told) -> None:
    told.fake.script("PATCH", ORDERS, refused(500, "InternalError"))
    with pytest.raises(LinkLost, match="can't be told anything"):
        told.tell()


def test_a_server_that_has_just_started_is_told_and_heard_later(told: Told) -> None:
    """It refuses for want of roles whom it let in before."""
    told.tell()
    while not told.job.pods():
        told.job.watch.wait(0.05)
    told.fake.script("PATCH", ORDERS, SHUT_OUT)
    with pytest.raises(LinkLost, match="can't be told anything"):
        told.tell()
    told.fake.script("GET", f"{PODS}/r-0", SHUT_OUT)
    told.fake.script("GET", f"{PODS}/r-0/log", refused(404, "NotFound"))
    with pytest.raises(LinkLost):
        told.job.attach(-1)
    told.fake.script("GET", f"{PODS}/r-0", refused(401, "Unauthorized"))
    with pytest.raises(PlatformError, match="credentials are not accepted"):
        told.job.attach(-1)


@pytest.mark.parametrize("status", [403, 500])
def test_a_pod_that_may_not_be_changed_hears_of_it_later(told: Told, status: int) -> None:
    told.fake.script("PATCH", f"{PODS}/r-0", refused(status, "AsTheTestHasIt"))
    told.tell()
    assert told.fake.count("PATCH", ORDERS) == 1
    (said,) = told.said
    assert "a little later" in said


@pytest.fixture
def lost(
    fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PodsAllocation]:
    """Its leader is lost; nothing of the run is in the cluster but what a test scripts."""
    monkeypatch.setattr(owned, "LOOK_EVERY_S", 0.005)
    monkeypatch.setattr(owned, "DELETE_LIMIT_S", 0.2)
    monkeypatch.setattr(Api, "connect", lambda context: fake.api())
    monkeypatch.setattr(allocation_module, "found_again", lambda api, place: place)
    for path in (PODS, CONFIG_MAPS, SECRETS):
        fake.script("GET", path, listed())
    answer, end = held()
    fake.script("WATCH", PODS, answer)
    folders = LaunchFolders(logs=tmp_path, working=tmp_path)
    PlaceFile(tmp_path).write(place_of(uid="u", num_pods=1))
    yield PodsAllocation(folders, experiment_of(), (), {})
    end.set()


LEFT = {
    "metadata": {"name": "r", "uid": "u", "labels": OURS},
    "apiVersion": "batch/v1",
    "kind": "Job",
}


def test_a_lost_leaders_job_is_deleted_before_it_is_forgotten(
    fake: FakeApi, lost: PodsAllocation, tmp_path: Path
) -> None:
    fake.script("GET", JOB, listed(LEFT), listed())
    fake.script("DELETE", f"{JOB}/r", Answer(body={}))
    lost.lose()
    assert fake.count("DELETE", f"{JOB}/r") == 1
    assert PlaceFile(tmp_path).read() is None
    assert lost.find() is None


def test_a_job_that_cannot_be_deleted_stays_known(
    fake: FakeApi, lost: PodsAllocation, tmp_path: Path
) -> None:
    fake.script("GET", JOB, listed(LEFT))
    fake.script("GET", f"{JOB}/r", Answer(body=LEFT))
    fake.script("DELETE", f"{JOB}/r", refused(403, "Forbidden"))
    with pytest.raises(PlatformError, match="can't be told whether it goes on"):
        lost.lose()
    assert PlaceFile(tmp_path).read() == place_of(uid="u", num_pods=1)


def test_pods_that_a_dead_node_keeps_do_not_hold_up_a_successor(
    fake: FakeApi, lost: PodsAllocation, tmp_path: Path
) -> None:
    kept = owned_pod("r-0", 0)
    kept["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    fake.script("GET", PODS, listed(kept))
    lost.lose()
    assert PlaceFile(tmp_path).read() is None
