"""Is whatever an API server, or what stands before it, answers one type of error or an object?"""

import json
import threading

import httpx2
import pytest
from tests.platforms.kubernetes.fake_api import (
    NAMESPACE,
    PODS,
    Answer,
    FakeApi,
    FakeTime,
    event_line,
    fake_api,
    listed,
    pod,
    refused,
)

from broadgauge.platforms.kubernetes import api as api_module
from broadgauge.platforms.kubernetes import resources
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError


def list_pods(api: Api) -> dict[str, object]:
    return api.list(resources.PODS, NAMESPACE, "a=b")


def error_of(fake: FakeApi) -> ApiError:
    with pytest.raises(ApiError) as caught:
        list_pods(fake.api())
    return caught.value


@pytest.mark.parametrize(
    ("status", "reason", "is_passing"),
    [
        (401, "Unauthorized", False),
        (403, "Forbidden", False),
        (404, "NotFound", False),
        (409, "Conflict", False),
        (410, "Expired", False),
        (422, "Invalid", False),
        (429, "TooManyRequests", True),
        (500, "InternalError", True),
        (503, "ServiceUnavailable", True),
    ],
)
def test_a_refusal_keeps_status_reason_verb_and_what(
    fake: FakeApi, status: int, reason: str, is_passing: bool
) -> None:
    fake.script("GET", PODS, refused(status, reason, "said so"))
    error = error_of(fake)
    assert (error.status, error.reason, error.message) == (status, reason, "said so")
    assert (error.verb, error.what) == ("list", f"pods in namespace {NAMESPACE}")
    assert error.is_passing is is_passing


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"<html>a login page</html>"),
        Answer(body=b'{"items": ['),
        Answer(body=b"[1, 2]"),
        Answer(stream=[b'{"metadata": '], is_cut=True),
    ],
)
def test_what_is_no_object_may_pass(fake: FakeApi, answer: Answer) -> None:
    """A proxy that comes up speaks for a while of other things."""
    fake.script("GET", PODS, answer)
    error = error_of(fake)
    assert error.status is None
    assert error.is_passing


def test_a_page_of_a_proxy_that_refuses_is_its_words(fake: FakeApi) -> None:
    fake.script("GET", PODS, Answer(status=502, body=b"<html>Bad Gateway</html>"))
    error = error_of(fake)
    assert error.status == 502
    assert "Bad Gateway" in error.message


def test_a_server_that_is_not_there_is_no_status() -> None:
    with fake_api() as gone:
        api = gone.api()
    with pytest.raises(ApiError) as caught:
        list_pods(api)
    assert caught.value.status is None


def test_a_server_that_is_silent_is_not_waited_for_without_end(fake: FakeApi) -> None:
    silent = threading.Event()
    fake.script("GET", PODS, Answer(stream=[silent]))
    api = fake.api()
    api.client.timeout = httpx2.Timeout(0.2)
    with pytest.raises(ApiError) as caught:
        list_pods(api)
    silent.set()
    assert caught.value.status is None


def test_a_busy_server_is_left_alone_as_long_as_it_asks(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    monkeypatch.setattr(api_module, "time", time)
    busy = Answer(status=429, headers={"Retry-After": "7"}, body={"message": "too many requests"})
    fake.script("GET", PODS, busy, refused(503, "ServiceUnavailable"), listed())
    api, said = fake.api(), list[str]()
    assert api.patiently(lambda: list_pods(api), 60.0, said.append)["items"] == []
    assert time.slept_s == [7.0, 1.0]
    assert len(said) == 2
    assert "too many requests" in said[0]


def test_patience_has_an_end_and_is_not_for_what_stays(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    monkeypatch.setattr(api_module, "time", time)
    api = fake.api()
    fake.script("GET", PODS, refused(500, "InternalError"))
    with pytest.raises(ApiError):
        api.patiently(lambda: list_pods(api), 20.0, lambda _: None)
    assert 20.0 < time.now_s < 40.0
    fake.script("GET", PODS, refused(403, "Forbidden"))
    num_asked = len(fake.asked)
    with pytest.raises(ApiError):
        api.patiently(lambda: list_pods(api), 20.0, lambda _: None)
    assert len(fake.asked) == num_asked + 1


def watched(fake: FakeApi, answer: Answer) -> tuple[list[str], ApiError | None]:
    """Names of the pods that were told, and how it ended."""
    fake.script("WATCH", PODS, answer)
    names: list[str] = []
    try:
        for kind, found in fake.api().watch(resources.PODS, NAMESPACE, "a=b", "7", 5.0):
            names.append(f"{kind} {found['metadata']['name']}")
    except ApiError as error:
        return names, error
    return names, None


def test_a_watch_tells_each_event_across_any_cut_of_its_bytes(fake: FakeApi) -> None:
    text = event_line("ADDED", pod("a")) + b"\n" + event_line("MODIFIED", pod("b"))
    pieces = [text[i : i + 7] for i in range(0, len(text), 7)]
    assert watched(fake, Answer(stream=pieces)) == (["ADDED a", "MODIFIED b"], None)
    [asked] = fake.asked
    assert asked.query["resourceVersion"] == "7"
    assert asked.query["labelSelector"] == "a=b"
    assert asked.query["allowWatchBookmarks"] == "true"


@pytest.mark.parametrize(
    "rest",
    [
        event_line("ADDED", pod("b"))[:-9],
        b'{"kind": "Status"}\n',
        b'["ADDED"]\n',
        b"<html></html>\n",
    ],
)
@pytest.mark.parametrize("is_cut", [True, False])
def test_half_an_event_and_what_is_none_end_the_watch(
    fake: FakeApi, rest: bytes, is_cut: bool
) -> None:
    answer = Answer(stream=[event_line("ADDED", pod("a")), rest], is_cut=is_cut)
    names, error = watched(fake, answer)
    assert names == ["ADDED a"]
    assert error is not None
    assert error.is_passing


def test_an_error_within_a_watch_is_the_servers_own(fake: FakeApi) -> None:
    told = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    names, error = watched(fake, Answer(stream=[event_line("ERROR", told)]))
    assert names == []
    assert error is not None
    assert (error.status, error.reason, error.verb) == (410, "Expired", "watch")


def test_no_credentials_stand_in_an_error(fake: FakeApi) -> None:
    api = fake.api()
    api.client.headers["Authorization"] = "Bearer very-secret"
    fake.script("GET", PODS, refused(401, "Unauthorized", "Unauthorized"))
    with pytest.raises(ApiError) as caught:
        list_pods(api)
    assert "very-secret" not in json.dumps(vars(caught.value))
