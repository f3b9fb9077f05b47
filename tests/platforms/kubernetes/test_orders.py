"""Proves that a leader in a pod is told each thing once, and that what can't be told is said."""

import base64

import pytest
from tests.platforms.kubernetes.fake_api import CONFIG_MAPS, PODS, Answer, FakeApi, refused

from broadgauge.messages.leader import LeaderOrder, Stop, TakeJobs
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.orders import (
    order_bytes,
    put_order,
    with_number_used,
    with_order_taken,
)
from broadgauge.platforms.led.handle import LinkLost
from broadgauge.specs.errors import PlatformError, UncollectedError

PLACE = JobPlace(
    context=None, namespace="training", run="small", name="small", kind="job", number=0
)
ORDERS = f"{CONFIG_MAPS}/small-orders"
JOBS = TakeJobs(generation=1, jobs=())


def put(fake: FakeApi, order: LeaderOrder, *, is_gone: bool = False) -> JobPlace:
    place = with_number_used(PLACE)
    put_order(fake.api(), place, order, first_pod="small-0", is_gone=lambda: is_gone)
    return with_order_taken(place, order)


def test_jobs_replace_all_orders_before_them(fake: FakeApi) -> None:
    fake.script("PATCH", ORDERS, Answer(body={"metadata": {"name": "small-orders"}}))
    fake.script("PATCH", f"{PODS}/small-0", Answer(body={"metadata": {"name": "small-0"}}))
    place = put(fake, JOBS)
    assert (place.next_order, place.generation) == (2, 1)
    told, hastened = fake.asked
    assert told.body["binaryData"] == {
        "order-0000.json.gz": None,
        "order-0001.json.gz": base64.b64encode(order_bytes(JOBS)).decode(),
    }
    assert hastened.body == {"metadata": {"annotations": {"broadgauge.dev/order": "1"}}}


def test_another_order_leaves_them_and_the_generation(fake: FakeApi) -> None:
    """Who may not change pods waits until the kubelet looks by itself."""
    fake.script("PATCH", ORDERS, Answer(body={"metadata": {"name": "small-orders"}}))
    fake.script("PATCH", f"{PODS}/small-0", refused(403, "Forbidden"))
    place = put(fake, Stop())
    assert (place.next_order, place.generation) == (2, 0)
    assert list(fake.asked[0].body["binaryData"]) == ["order-0001.json.gz"]


def test_an_order_that_is_too_large_is_refused_for_good(fake: FakeApi) -> None:
    fake.script("PATCH", ORDERS, refused(413, "RequestEntityTooLarge"))
    with pytest.raises(PlatformError, match="telling job small in namespace training what to do"):
        put(fake, JOBS)


@pytest.mark.parametrize(
    ("answer", "is_gone"),
    [(refused(404, "NotFound"), True), (refused(503, "ServiceUnavailable"), False)],
)
def test_who_is_gone_or_away_is_lost(fake: FakeApi, answer: Answer, is_gone: bool) -> None:
    """What leads the run decides whether another one is made."""
    fake.script("PATCH", ORDERS, answer)
    with pytest.raises(LinkLost, match="can't be told anything"):
        put(fake, JOBS, is_gone=is_gone)


@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_tell_it_anything_any_more_leaves_it(fake: FakeApi, status: int) -> None:
    """Rights come back; what runs is left."""
    fake.script("PATCH", ORDERS, refused(status, "Forbidden"))
    with pytest.raises(UncollectedError, match="what to do"):
        put(fake, JOBS)


def test_orders_that_are_gone_while_the_job_is_there_are_a_fault(fake: FakeApi) -> None:
    fake.script("PATCH", ORDERS, refused(404, "NotFound"))
    with pytest.raises(PlatformError, match="what to do"):
        put(fake, JOBS)
