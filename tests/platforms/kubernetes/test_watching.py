"""Does the tool know what pods do, whatever becomes of its one watch?"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    NAMESPACE,
    PODS,
    Answer,
    Asked,
    FakeApi,
    FakeTime,
    event_line,
    events,
    fake_api,
    held,
    listed,
    pod,
    refused,
)
from tests.platforms.kubernetes.test_api_rights import SHUT_OUT
from tests.timeouts import HANG_S

from broadgauge.platforms.kubernetes import api_rights, watching
from broadgauge.platforms.kubernetes.api import LONGEST_PAUSE_S, Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.api_rights import SHUT_OUT_LIMIT_S
from broadgauge.platforms.kubernetes.pod_states import PodStage
from broadgauge.platforms.kubernetes.watching import PodWatch
from broadgauge.specs.errors import PlatformError

LIMIT_S = HANG_S


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "AGAIN_AFTER_S", (0.005,))


@contextmanager
def watch(fake: FakeApi, said: list[str] | None = None) -> Iterator[PodWatch]:
    found = PodWatch(
        fake.api(), NAMESPACE, "a=b", (said if said is not None else list[str]()).append
    )
    try:
        yield found
    finally:
        found.close()


def stages(found: PodWatch) -> dict[str, PodStage]:
    return {state.name: state.stage for state in found.pods()}


def until(found: PodWatch, condition: Callable[[], bool]) -> None:
    for _ in range(int(LIMIT_S / 0.05)):
        if condition():
            return
        found.wait(0.05)
    raise AssertionError(f"not in {LIMIT_S:g} s: {found.pods()}")


def test_a_pod_is_as_it_was_listed_then_as_events_say(fake: FakeApi) -> None:
    changed = pod("a", "3", phase="Failed")
    answer, end = held(("ADDED", pod("b", "2")), ("MODIFIED", changed), ("DELETED", pod("b", "4")))
    fake.script("GET", PODS, listed(pod("a"), version="1"))
    fake.script("WATCH", PODS, answer)
    with watch(fake) as found:
        wanted = {"a": PodStage.FAILED, "b": PodStage.GONE}
        until(found, lambda: stages(found) == wanted)
        end.set()


def test_a_watch_that_is_closed_goes_on_where_it_was_even_after_a_bookmark(fake: FakeApi) -> None:
    bookmark = {"kind": "Pod", "metadata": {"resourceVersion": "90"}}
    answer, end = held(("ADDED", pod("b", "91")))
    fake.script("GET", PODS, listed(pod("a"), version="1"))
    fake.script("WATCH", PODS, events(("BOOKMARK", bookmark)), answer)
    with watch(fake) as found:
        until(found, lambda: "b" in stages(found))
        end.set()
    versions = [
        each.query["resourceVersion"] for each in fake.asked if each.query.get("watch") == "true"
    ]
    assert versions[:2] == ["1", "90"]
    assert len(fake.asked) - len(versions) == 1  # listed once


EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


@pytest.mark.parametrize("answer", [refused(410, "Expired"), events(("ERROR", EXPIRED))])
def test_a_version_that_is_too_old_lists_again_and_what_is_not_there_is_gone(
    fake: FakeApi, answer: Answer
) -> None:
    held_open, end = held()
    fake.script("GET", PODS, listed(pod("a"), pod("b")), listed(pod("b"), version="9"))
    fake.script("WATCH", PODS, answer, held_open)
    with watch(fake) as found:
        wanted = {"a": PodStage.GONE, "b": PodStage.RUNNING}
        until(found, lambda: stages(found) == wanted)
        end.set()


@pytest.mark.parametrize(
    "answer",
    [
        events(("ADDED", pod("b", "2")), is_cut=True),
        Answer(stream=[event_line("ADDED", pod("b", "2")), b'{"type": "MODI'], is_cut=True),
        Answer(stream=[event_line("ADDED", pod("b", "2")), b'{"type": "MODI']),
        events(("ADDED", pod("b", "2"))),
    ],
)
def test_a_watch_that_breaks_loses_nothing(fake: FakeApi, answer: Answer) -> None:
    after, end = held(("ADDED", pod("c", "3")))
    fake.script("GET", PODS, listed(pod("a")))
    fake.script("WATCH", PODS, answer, refused(500, "InternalError"), after)
    with watch(fake) as found:
        until(found, lambda: stages(found).keys() == {"a", "b", "c"})
        end.set()
    again = [each.query["resourceVersion"] for each in fake.asked if "watch" in each.query]
    assert again[:3] == ["1", "2", "2"]
    assert fake.count("GET", PODS) == 1


def test_a_server_that_is_away_is_said_after_a_while_and_its_return_too(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    monkeypatch.setattr(watching, "time", time)
    monkeypatch.setattr(watching, "AGAIN_AFTER_S", (1.0,))
    is_back = threading.Event()

    def answer(_: object) -> Answer:
        return listed(pod("a")) if is_back.is_set() else refused(503, "ServiceUnavailable", "down")

    held_open, end = held()
    fake.script("GET", PODS, answer)
    fake.script("WATCH", PODS, held_open)
    said: list[str] = []
    with watch(fake, said) as found:
        until(found, lambda: bool(said))
        assert time.now_s > watching.SAY_AFTER_S
        is_back.set()
        until(found, lambda: len(said) == 2)
        assert stages(found) == {"a": PodStage.RUNNING}
        end.set()
    assert "does not answer" in said[0]
    assert "down" in said[0]
    assert "goes on in its pods" in said[0]
    assert said[1] == "the API server answers again"


def test_a_server_that_cannot_be_reached_is_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(watching, "SAY_AFTER_S", 0.0)
    with fake_api() as gone:
        pass
    with watch(gone, said) as found:
        until(found, lambda: bool(said))
        assert found.pods() == []


@pytest.mark.parametrize("status", [401, 403])
def test_what_does_not_come_right_is_raised_to_whoever_asks(fake: FakeApi, status: int) -> None:
    fake.script("GET", PODS, listed(pod("a")))
    fake.script("WATCH", PODS, refused(status, "No"))
    with watch(fake) as found:

        def is_raised() -> bool:
            try:
                found.pods()
            except ApiError as error:
                return error.status == status
            return False

        for _ in range(400):
            if is_raised():
                break
            found.wait(0.05)
        assert is_raised()


def test_a_server_that_has_just_started_may_refuse_for_want_of_roles(fake: FakeApi) -> None:
    held_open, end = held(("ADDED", pod("b", "8")))
    fake.script("GET", PODS, listed(pod("a")))
    fake.script("WATCH", PODS, SHUT_OUT, SHUT_OUT, held_open)
    with watch(fake) as found:
        until(found, lambda: stages(found).keys() == {"a", "b"})
        end.set()


def test_rights_that_are_gone_are_raised_once_that_has_lasted(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    for module in (watching, api_rights):
        monkeypatch.setattr(module, "time", time)
    monkeypatch.setattr(watching, "AGAIN_AFTER_S", (10.0,))
    fake.script("GET", PODS, listed(pod("a")))
    fake.script("WATCH", PODS, SHUT_OUT)
    with watch(fake) as found:
        error = raised(found)
    assert isinstance(error, ApiError)
    assert error.status == 403
    assert SHUT_OUT_LIMIT_S <= time.now_s < 2 * SHUT_OUT_LIMIT_S


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks_for(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    monkeypatch.setattr(watching, "time", time)
    busy = [
        Answer(status=429, headers={"Retry-After": wait}, body={"message": "too many requests"})
        for wait in ("7", "86400")
    ]
    held_open, end = held(("ADDED", pod("b", "8")))
    fake.script("GET", PODS, listed(pod("a")))
    fake.script("WATCH", PODS, *busy, held_open)
    with watch(fake) as found:
        until(found, lambda: stages(found).keys() == {"a", "b"})
        end.set()
    assert time.slept_s[:2] == [7.0, LONGEST_PAUSE_S]


def object_event(body: bytes) -> Answer:
    return Answer(stream=[b'{"type": "MODIFIED", "object": ' + body + b"}\n"])


NO_ANSWERS = [
    Answer(body=b"<html>log in</html>"),
    Answer(body=b"[1]"),
    Answer(body=b'{"a": ' + b"9" * 5000 + b"}"),
    Answer(body=b'{"a": ' + b"[" * 100_000),
    Answer(body=b"\xff\xfe\x00\xd8"),
    Answer(body=b"\x80" * 10, status=500),
    Answer(body={"metadata": None, "items": None}),
    Answer(body={"metadata": {"resourceVersion": "1"}, "items": [None]}),
    Answer(body={"metadata": {"resourceVersion": "1"}, "items": [{"status": {}}]}),
    Answer(body={"metadata": [], "items": []}),
]
NO_EVENTS = [
    Answer(stream=[b"[]\n"]),
    Answer(stream=[b'{"a": ' + b"9" * 5000 + b"}\n"]),
    Answer(stream=[b"[" * 100_000 + b"\n"]),
    Answer(stream=[b'\xff\xfe{"type": \x80\n']),
    object_event(b'{"kind": "Status"}'),
    object_event(b'{"metadata": null}'),
    object_event(b'{"metadata": {"resourceVersion": 7, "name": "a"}}'),
    object_event(b'{"metadata": {"resourceVersion": "7"}}'),
    events(("ERROR", {"code": "x", "message": None})),
]


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_what_is_no_list_is_asked_for_again(fake: FakeApi, answer: Answer) -> None:
    held_open, end = held()
    fake.script("GET", PODS, answer, listed(pod("a")))
    fake.script("WATCH", PODS, held_open)
    with watch(fake) as found:
        until(found, lambda: stages(found) == {"a": PodStage.RUNNING})
        end.set()


@pytest.mark.parametrize("answer", NO_EVENTS)
def test_what_is_no_event_ends_that_watch_and_no_other(fake: FakeApi, answer: Answer) -> None:
    held_open, end = held(("ADDED", pod("b", "8")))
    fake.script("GET", PODS, listed(pod("a")))
    fake.script("WATCH", PODS, answer, held_open)
    with watch(fake) as found:
        until(found, lambda: stages(found).keys() == {"a", "b"})
        end.set()


@pytest.mark.parametrize("answer", [Answer(body=b"<html></html>"), refused(503, "Unavailable")])
def test_a_server_that_never_comes_back_is_not_waited_for_for_ever(
    fake: FakeApi, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    monkeypatch.setattr(watching, "time", time)
    monkeypatch.setattr(watching, "AGAIN_AFTER_S", (100.0,))
    fake.script("GET", PODS, answer)
    with watch(fake) as found:
        assert isinstance(raised(found), ApiError)
    assert time.now_s > watching.AWAY_LIMIT_S


def test_quiet_watches_that_a_proxy_cuts_are_no_server_that_is_away(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time after time, for longer than a server may be away; then pods are still seen."""
    time = FakeTime()
    monkeypatch.setattr(watching, "time", time)
    num_cuts = 0
    is_open = threading.Semaphore(0)
    watch_of_api = Api.watch

    def told_watch(*words: Any, opened: Callable[[], None]) -> Iterator[Any]:
        def tell() -> None:
            opened()
            is_open.release()

        return watch_of_api(*words, opened=tell)

    def cut(_: Asked) -> Answer:
        nonlocal num_cuts
        num_cuts += 1
        return Answer(stream=Quiet(time, watching.AWAY_LIMIT_S / 20, is_open), is_cut=True)

    monkeypatch.setattr(Api, "watch", told_watch)

    held_open, end = held(("ADDED", pod("b", "8")))
    fake.script("GET", PODS, listed(pod("a")))
    fake.script("WATCH", PODS, *[cut] * 30, held_open)
    said: list[str] = []
    with watch(fake, said) as found:
        until(found, lambda: stages(found).keys() == {"a", "b"})
        end.set()
    assert num_cuts == 30
    assert time.now_s > watching.AWAY_LIMIT_S
    assert said == []


class Quiet(list[bytes]):
    """A stream of nothing for so long, once whoever asked knows that it is open."""

    def __init__(self, time: FakeTime, time_s: float, is_open: threading.Semaphore) -> None:
        self.time, self.time_s, self.is_open = time, time_s, is_open

    def __iter__(self) -> Iterator[bytes]:
        assert self.is_open.acquire(timeout=LIMIT_S)
        self.time.now_s += self.time_s
        return iter(())


def test_whatever_else_ends_the_thread_is_told_to_who_waits(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(watching, "pod_state", broken)
    fake.script("GET", PODS, listed(pod("a")))
    with watch(fake) as found:
        error = raised(found)
    assert isinstance(error, PlatformError)
    assert "ZeroDivisionError: a fault of ours" in error.message
    assert "run --resume" in str(error.hint)


def raised(found: PodWatch) -> Exception:
    """What whoever asks is told, once the thread has ended."""
    errors: list[Exception] = []

    def is_told() -> bool:
        try:
            found.pods()
        except (ApiError, PlatformError) as error:
            errors.append(error)
        return bool(errors)

    for _ in range(int(LIMIT_S / 0.05)):
        if is_told():
            return errors[0]
        found.wait(0.05)
    raise AssertionError("nothing is raised")


def test_a_watch_that_ends_at_once_each_time_is_not_begun_without_pause(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_enough, end = threading.Event(), threading.Event()

    class Paused(FakeTime):
        def sleep(self, time_s: float) -> None:
            self.slept_s.append(time_s)
            if len(self.slept_s) >= 4:
                is_enough.set()
                end.wait(LIMIT_S)

    time = Paused()
    monkeypatch.setattr(watching, "AGAIN_AFTER_S", (1.0, 2.0, 4.0))
    monkeypatch.setattr(watching, "time", time)
    fake.script("GET", PODS, listed())
    fake.script("WATCH", PODS, Answer(stream=[]))
    with watch(fake):
        assert is_enough.wait(LIMIT_S)
    end.set()
    assert time.slept_s[:4] == [1.0, 2.0, 4.0, 4.0]


def test_256_pods_are_one_list_and_one_watch(fake: FakeApi) -> None:
    pods = [pod(f"p{i:03}", phase="Pending") for i in range(256)]
    changes = [("MODIFIED", pod(f"p{i:03}", str(i + 2))) for i in range(256)]
    answer, end = held(*changes)
    fake.script("GET", PODS, listed(*pods))
    fake.script("WATCH", PODS, answer)
    with watch(fake) as found:
        until(found, lambda: set(stages(found).values()) == {PodStage.RUNNING})
        assert len(found.pods()) == 256
        assert len(fake.asked) == 2
        end.set()
