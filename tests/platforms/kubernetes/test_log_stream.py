"""Is every numbered event of a pod's log had once, whatever becomes of the stream?"""

import threading
from pathlib import Path

import pytest
from tests.platforms.kubernetes.fake_api import (
    PODS,
    Answer,
    FakeApi,
    FakeTime,
    Script,
    fake_api,
    listed,
    refused,
)
from tests.platforms.kubernetes.test_api_rights import SHUT_OUT

from broadgauge.messages.codec import encode
from broadgauge.messages.frames import FrameWriter
from broadgauge.messages.leader import LeaderHello, LeaderOrder, Spooled, TrialBegins
from broadgauge.platforms.kubernetes import log_stream
from broadgauge.platforms.kubernetes.leader_log import LogLink, LogPump
from broadgauge.platforms.kubernetes.log_stream import follow_log
from broadgauge.platforms.kubernetes.pod_lines import PodLines
from broadgauge.platforms.kubernetes.resources import PODS as POD_KIND
from broadgauge.platforms.led.handle import LinkLost

LOG = f"{PODS}/lead/log"
NUM_EVENTS = 12


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "AGAIN_AFTER_S", (0.005,))


def frames() -> bytes:
    """A leader's whole log, with what others write into it."""
    writer = FrameWriter("leader-1", is_shared=True)
    hello = LeaderHello(version="v", pid=1, generation=0, next_number=0)
    told = [writer.write(hello)]
    for number in range(NUM_EVENTS):
        event = encode(TrialBegins(trial_id=f"t{number}", unix_s=0.0))
        told += [writer.write(Spooled(number=number, generation=0, event=event)), b"other text\n"]
    return b"".join(told)


def numbers_of(
    fake: FakeApi, said: list[str] | None = None, kept: PodLines | None = None
) -> list[int]:
    """Of the events that come out, until the pod has ended and its log was read."""
    has_ended = threading.Event()
    orders: list[LeaderOrder] = []

    def is_over() -> bool:
        return has_ended.is_set() or fake.count("GET", LOG) >= len(SCRIPTED[fake]) - 1

    said = said if said is not None else []
    stream = follow_log(
        fake.api(), "training", "lead", "pytorch", has_ended=is_over, say=said.append
    )
    link = LogLink(
        pump=LogPump(stream),
        tell=orders.append,
        hear_line=(lambda _: None) if kept is None else kept.keep,
        begins=(lambda: None) if kept is None else kept.begins,
        why_ended=lambda: None,
        last=-1,
        generation=0,
    )
    found: list[int] = []
    while True:
        try:
            event = link.receive(20.0)
        except LinkLost:
            assert orders == []  # nothing was missed, so that nothing was asked for again
            return found
        assert event is not None
        found.append(event.number)


SCRIPTED: dict[FakeApi, list[Script]] = {}


def script(fake: FakeApi, *answers: Script) -> None:
    SCRIPTED[fake] = list(answers)
    fake.script("GET", LOG, *answers)


@pytest.mark.parametrize("at", [0, 1, 40, 200, 500, 777])
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_stream_that_ends_in_mid_line_is_read_again_and_nothing_is_double(
    fake: FakeApi, at: int, is_cut: bool
) -> None:
    log = frames()
    whole = Answer(stream=[log])
    script(fake, Answer(stream=[log[:at]] if at else [], is_cut=is_cut), whole, whole)
    assert numbers_of(fake) == list(range(NUM_EVENTS))


@pytest.mark.parametrize("at", [0, 1, 40, 200, 500, 777])
@pytest.mark.parametrize("is_cut", [True, False])
def test_what_stands_beside_the_events_is_kept_once(
    fake: FakeApi, tmp_path: Path, at: int, is_cut: bool
) -> None:
    log = frames()
    whole = Answer(stream=[log])
    script(fake, Answer(stream=[log[:at]] if at else [], is_cut=is_cut), whole, whole, whole)
    kept = PodLines(tmp_path / "pod0.log")
    numbers_of(fake, kept=kept)
    assert (tmp_path / "pod0.log").read_text() == "other text\n" * NUM_EVENTS


def test_errors_between_two_streams_cost_nothing(fake: FakeApi) -> None:
    log = frames()
    whole = Answer(stream=[log[i : i + 33] for i in range(0, len(log), 33)])
    busy = Answer(status=429, headers={"Retry-After": "0"}, body={"message": "busy"})
    script(
        fake,
        Answer(stream=[log[:300]], is_cut=True),
        refused(500, "InternalError"),
        busy,
        refused(503, "ServiceUnavailable"),
        whole,
        whole,
    )
    assert numbers_of(fake) == list(range(NUM_EVENTS))


def test_a_slow_stream_is_one_stream(fake: FakeApi) -> None:
    log, later = frames(), threading.Event()
    timer = threading.Timer(0.1, later.set)
    timer.start()
    script(fake, Answer(stream=[log[:250], later, log[250:]]), Answer(stream=[log]))
    assert numbers_of(fake) == list(range(NUM_EVENTS))
    timer.join()


def test_a_log_that_cannot_be_read_for_a_while_is_said_once_and_its_return(fake: FakeApi) -> None:
    away = refused(500, "InternalError", "kubelet is away")
    log = Answer(stream=[frames()])
    said: list[str] = []
    script(fake, *[away] * 6, log, log)
    assert numbers_of(fake, said) == list(range(NUM_EVENTS))
    assert len(said) == 2
    assert "kubelet is away" in said[0]
    assert said[1] == "the log of lead can be read again"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_waiting_does_not_help_where_it_may_not_be_read(fake: FakeApi, status: int) -> None:
    fake.script("GET", LOG, refused(status, "No", "no more"))
    stream = follow_log(
        fake.api(), "training", "lead", "pytorch", has_ended=lambda: False, say=lambda _: None
    )
    with pytest.raises(LinkLost, match="no more"):
        list(stream)


def test_a_log_of_a_server_that_has_just_started_is_asked_for_again(fake: FakeApi) -> None:
    fake.script("GET", PODS, listed())
    fake.script("GET", LOG, SHUT_OUT, SHUT_OUT, Answer(stream=[b"here\n"]))
    api = fake.api()
    api.list(POD_KIND, "training")
    stream = follow_log(
        api, "training", "lead", "pytorch", has_ended=lambda: True, say=lambda _: None
    )
    assert b"here\n" in list(stream)


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks_for(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    monkeypatch.setattr(log_stream, "time", time)
    busy = Answer(status=429, headers={"Retry-After": "7"}, body={"message": "too many requests"})
    fake.script("GET", LOG, busy, Answer(stream=[b"here\n"]))
    stream = follow_log(
        fake.api(), "training", "lead", "pytorch", has_ended=lambda: True, say=lambda _: None
    )
    assert b"here\n" in list(stream)
    assert time.slept_s == [7.0]


def test_a_server_that_stays_away_is_given_up_after_a_long_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time = FakeTime()
    monkeypatch.setattr(log_stream, "time", time)
    monkeypatch.setattr(log_stream, "AGAIN_AFTER_S", (100.0,))
    with fake_api() as gone:
        api = gone.api()
    stream = follow_log(
        api, "training", "lead", "pytorch", has_ended=lambda: False, say=lambda _: None
    )
    with pytest.raises(LinkLost, match="900 s"):
        list(stream)
    assert time.now_s > log_stream.AWAY_LIMIT_S
