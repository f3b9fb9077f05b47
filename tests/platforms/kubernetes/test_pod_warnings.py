"""Is it said why pods don't start where only events say it, and are few of them asked for?"""

from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    NAMESPACE,
    Answer,
    Asked,
    FakeApi,
    FakeTime,
    listed,
    pod,
    refused,
)
from tests.platforms.kubernetes.test_ownership import place_of

from broadgauge.platforms.kubernetes import pod_warnings
from broadgauge.platforms.kubernetes.ownership import events_of_makers
from broadgauge.platforms.kubernetes.pod_states import PodState, pod_state, waits
from broadgauge.platforms.kubernetes.pod_warnings import ASK_EVERY_S, MOST_ASKED, QUIET_S
from broadgauge.specs.kubernetes.settings import JobKind

EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
SANDBOX = "Failed to create pod sandbox: rpc error: no device ens99 (sandbox {})"


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    found = FakeTime()
    monkeypatch.setattr(pod_warnings, "time", found)
    return found


def event(reason: str, message: str, minute: int = 0, kind: str = "Warning") -> dict[str, Any]:
    return {
        "metadata": {"name": f"{reason}.{minute}"},
        "type": kind,
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-01-01T00:{minute:02}:00Z",
    }


def starting(name: str = "a") -> PodState:
    body = pod(name, phase="Pending")
    body["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
    return pod_state(body)


class Waiting:
    """Somebody who looks at pods that do not change, each second."""

    def __init__(self, fake: FakeApi, time: FakeTime, *pods: PodState) -> None:
        self.fake, self.time, self.pods = fake, time, pods or (starting(),)
        self.warnings = pod_warnings.PodWarnings(api=fake.api(), namespace=NAMESPACE)

    def look(self, time_s: float) -> str:
        """For so long; what is shown at its end."""
        for _ in range(int(time_s)):
            words = waits(self.warnings.explained(self.pods))
            self.time.sleep(1.0)
        return words


def test_a_pod_that_starts_for_long_has_its_newest_warning(fake: FakeApi, time: FakeTime) -> None:
    told = [
        event("FailedScheduling", "no node", 1),
        event("FailedMount", "an older one", 2),
        event("FailedCreatePodSandBox", SANDBOX.format("0123456789abcdef" * 4), 3),
        event("SandboxChanged", "it will be made again", 4, "Normal"),
    ]
    fake.script("GET", EVENTS, listed(*told))
    waiting = Waiting(fake, time)
    assert waiting.look(QUIET_S) == "1 pod starting"
    assert fake.asked == []
    words = f"1 pod starting (FailedCreatePodSandBox: {SANDBOX.format('…')})"
    assert waiting.look(5) == words
    assert {each.query["fieldSelector"] for each in fake.asked} == {"involvedObject.uid=a"}


def test_an_event_in_the_newer_form_counts_by_its_own_time(fake: FakeApi, time: FakeTime) -> None:
    late = event("FailedAttachVolume", "in use elsewhere") | {
        "lastTimestamp": None,
        "eventTime": "2026-01-01T00:09:00.000000Z",
    }
    fake.script("GET", EVENTS, listed(late, event("FailedMount", "timed out", 5)))
    assert "in use elsewhere" in Waiting(fake, time).look(QUIET_S + 3)


@pytest.mark.parametrize(
    "told",
    [
        [],
        [event("FailedScheduling", "no node", 1)],
        [event("FailedMount", "once", 1), event("Pulling", "a large image", 2, "Normal")],
    ],
)
def test_what_is_overcome_or_of_another_time_is_not_shown(
    fake: FakeApi, time: FakeTime, told: list[dict[str, Any]]
) -> None:
    fake.script("GET", EVENTS, listed(*told))
    assert Waiting(fake, time).look(QUIET_S + 10) == "1 pod starting"


def test_who_may_not_read_events_waits_without_them(fake: FakeApi, time: FakeTime) -> None:
    fake.script("GET", EVENTS, refused(403, "Forbidden"))
    assert Waiting(fake, time).look(QUIET_S + 10) == "1 pod starting"


def test_a_few_of_many_pods_are_asked_about_seldom(fake: FakeApi, time: FakeTime) -> None:
    fake.script("GET", EVENTS, listed(event("FailedMount", "timed out")))
    waiting = Waiting(fake, time, *(starting(f"p{number:03}") for number in range(256)))
    words = waiting.look(QUIET_S + 40)
    assert words == f"{MOST_ASKED} pods starting (FailedMount: timed out); 253 pods starting"
    assert len(fake.asked) <= MOST_ASKED * (40 / ASK_EVERY_S + 1)


def test_a_pod_that_got_on_is_not_explained_any_more(fake: FakeApi, time: FakeTime) -> None:
    fake.script("GET", EVENTS, listed(event("FailedMount", "timed out")))
    waiting = Waiting(fake, time)
    assert "timed out" in waiting.look(QUIET_S + 5)
    waiting.pods = (pod_state(pod("a")),)
    assert waiting.look(1) == "1 running"


@pytest.mark.parametrize(
    ("kind", "uid", "selectors"),
    [
        ("job", "u", ("involvedObject.uid=u",)),
        ("job", None, ("involvedObject.kind=Job,involvedObject.name=r",)),
        ("pytorchjob", "u", ("involvedObject.uid=u",)),
        (
            "trainjob",
            "u",
            ("involvedObject.uid=u", "involvedObject.kind=Job,involvedObject.name=r-node-0"),
        ),
    ],
)
def test_who_makes_the_pods_is_asked_why_some_lack(
    fake: FakeApi, time: FakeTime, kind: JobKind, uid: str | None, selectors: tuple[str, ...]
) -> None:
    found = events_of_makers(place_of(kind, uid=uid))
    assert found == selectors

    def answer(asked: Asked) -> Answer:
        is_last = asked.query["fieldSelector"].startswith(selectors[-1])
        quota = event("FailedCreate", "exceeded quota: small", 2)
        return listed(quota, event("FailedCreate", "older", 1)) if is_last else listed()

    fake.script("GET", EVENTS, answer)
    warnings = pod_warnings.PodWarnings(api=fake.api(), namespace=NAMESPACE)
    assert warnings.lack(2, found) == ""
    time.sleep(ASK_EVERY_S + 1)
    assert warnings.lack(2, found) == "; 2 pods can't be made: exceeded quota: small"
    assert warnings.lack(2, found) == "; 2 pods can't be made: exceeded quota: small"
    asked = [each.query["fieldSelector"] for each in fake.asked]
    assert asked == [f"{each},type=Warning" for each in selectors]  # once
    assert warnings.lack(0, found) == ""
