"""Is the end of a leader told in the words of whoever ended it, which come after its own?"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import PODS, Answer, FakeApi, event_line, listed
from tests.platforms.kubernetes.test_leader_log import hello
from tests.platforms.kubernetes.test_ownership import COMPLETION, OF_JOB, OURS, place_of
from tests.timeouts import HANG_S

from broadgauge.messages.frames import FrameWriter
from broadgauge.messages.leader import TOLD_TO_END, LeaderGivesUp
from broadgauge.platforms.kubernetes.job_place import place_file
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.platforms.led.handle import LinkLost

EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}


def leading(status: dict[str, Any], *, version: str = "1", uid: str = "first") -> dict[str, Any]:
    """The pod that leads."""
    metadata = {
        "name": f"lead-{uid}",
        "uid": uid,
        "resourceVersion": version,
        "labels": {**OURS, COMPLETION: "0"},
        "ownerReferences": [OF_JOB],
    }
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}


@pytest.fixture
def hears_end() -> Iterator[threading.Event]:
    """Set: the watch tells that the pod was evicted, and that another came in its place."""
    event = threading.Event()
    yield event
    event.set()


def last_words(fake: FakeApi, folder: Path, hears_end: threading.Event, words: str) -> str:
    """As a user reads them of a leader that gives up with these, and hears of its pod after it."""
    fake.script("GET", PODS, listed(leading({"phase": "Running"})))
    told = [
        ("MODIFIED", leading(EVICTED, version="2")),
        ("ADDED", leading({"phase": "Pending"}, version="3", uid="second")),
    ]
    stream = [hears_end, *(event_line(*each) for each in told), threading.Event()]
    fake.script("WATCH", PODS, Answer(stream=stream))
    frames = FrameWriter("leader")
    log = [frames.write(hello()), frames.write(LeaderGivesUp(message=words))]
    fake.script("GET", f"{PODS}/lead-first/log", Answer(stream=log))
    job = RunningJob(fake.api(), place_of(uid="u"), place_file(folder), folder, lambda _: None)
    attached = job.attach(-1)
    link, in_full = attached.link, attached.link.in_full

    def ended_first(own: str) -> str:
        hears_end.set()
        return in_full(own)

    link.in_full = ended_first
    with pytest.raises(LinkLost) as lost:
        link.receive(HANG_S)
    attached.close()
    job.watch.close()
    assert str(lost.value) == link.last_words
    return str(lost.value)


def test_a_leader_that_was_told_to_end_is_explained_by_its_kubelet(
    fake: FakeApi, tmp_path: Path, hears_end: threading.Event
) -> None:
    """Also where another pod has its number by then."""
    words = last_words(fake, tmp_path, hears_end, TOLD_TO_END)
    ended = "lead-first on n1: failed (Evicted: The node was low on memory.)"
    assert words == f"{TOLD_TO_END}: {ended}"


def test_a_leader_that_knows_why_it_ends_is_taken_at_its_word(
    fake: FakeApi, tmp_path: Path, hears_end: threading.Event
) -> None:
    assert last_words(fake, tmp_path, hears_end, "/kept is full") == "/kept is full"
