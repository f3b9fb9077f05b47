"""Is what a run kept on a volume heard, and left there for another try where it can't be?"""

from pathlib import Path

import pytest
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    Answer,
    Asked,
    FakeApi,
    held,
    listed,
    refused,
)
from tests.platforms.kubernetes.test_leader_log import event, hello
from tests.platforms.kubernetes.test_ownership import COMPLETION, OF_JOB, OURS, place_of
from tests.running.rendering.runs import small_run
from tests.timeouts import HANG_S

from broadgauge.messages.frames import FrameWriter
from broadgauge.platforms.kubernetes.job_place import place_file
from broadgauge.platforms.kubernetes.kept_results import MOST_TRIES, KeptResults
from broadgauge.platforms.kubernetes.leader_log import AttachedLog
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.platforms.led.handle import LinkLost
from broadgauge.specs.errors import UncollectedError

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
LOG = f"{PODS}/reader/log"
VOLUME = "kubernetes.volumes=[{name: kept, mount: /kept, claim: shared}]"
RESULTS = "kubernetes.results=kept"
WHY = "job r has failed"


def told(num_events: int, *, first: int = 0, is_whole: bool = True) -> bytes:
    """By a reader, up to its end or not."""
    frames = FrameWriter("kept", is_shared=True)
    events = [frames.write(event(number)) for number in range(first, num_events)]
    return b"".join([frames.write(hello()), *events, frames.close() if is_whole else b""])


class Reading:
    """Of the results of job r, whose pods are gone; each reader's pod is in this phase."""

    def __init__(self, fake: FakeApi, folder: Path, *settings: str) -> None:
        (folder / "train.py").touch()
        run = small_run(folder, *settings)
        self.fake, self.said = fake, list[str]()
        self.kept = KeptResults(run_at=lambda _: run, say=self.said.append)
        self.phase = "Succeeded"
        for path in (CONFIG_MAPS, JOBS):
            fake.script("POST", path, lambda asked: Answer(status=201, body=asked.body))
        fake.script("GET", PODS, self._pods)
        fake.script("WATCH", PODS, held()[0])
        place = place_of(uid="u")
        self.job = RunningJob(fake.api(), place, place_file(folder), folder, self.said.append)

    def says(self, *pieces: bytes) -> None:
        """The log of each reader's pod."""
        self.fake.script("GET", LOG, Answer(stream=pieces))

    def attach(self, after: int = -1) -> AttachedLog | None:
        return self.kept.attach(self.job, after, WHY)

    def readers(self) -> list[str]:
        """Names of the Jobs that were made."""
        asked = (each for each in self.fake.asked if (each.method, each.path) == ("POST", JOBS))
        return [each.body["metadata"]["name"] for each in asked]

    def _pods(self, asked: Asked) -> Answer:
        """Of the last one."""
        del asked
        name = (self.readers() or ["none yet"])[-1]
        metadata = {
            "name": "reader",
            "uid": name,
            "resourceVersion": "1",
            "labels": {**OURS, COMPLETION: "0"},
            "ownerReferences": [OF_JOB | {"name": name, "uid": name}],
        }
        status = {"phase": self.phase, "message": "exit code 1"}
        return listed({"metadata": metadata, "status": status})


@pytest.fixture
def reading(fake: FakeApi, tmp_path: Path) -> Reading:
    return Reading(fake, tmp_path, VOLUME, RESULTS)


def numbers(attached: AttachedLog | None) -> list[int]:
    """Of the events that are heard until the link is lost."""
    assert attached is not None
    found: list[int] = []
    while True:
        try:
            came = attached.link.receive(HANG_S)
        except LinkLost:
            return found
        assert came is not None
        found.append(came.number)


def test_what_was_kept_is_heard_and_not_read_again_where_nothing_is_new(reading: Reading) -> None:
    shown: list[str] = []
    reading.kept.show = shown.append
    reading.says(told(3))
    attached = reading.attach()
    assert numbers(attached) == [0, 1, 2]
    assert attached is not None
    assert attached.link.last_words == "it has ended"
    assert reading.said[0] == f"{WHY}: reading what it kept on volume kept"
    assert shown[0] == reading.said[0]  # at once, and for later
    assert reading.attach() is None
    assert len(reading.readers()) == 1


def test_a_job_that_keeps_nothing_has_told_all(fake: FakeApi, tmp_path: Path) -> None:
    reading = Reading(fake, tmp_path)
    assert reading.attach() is None
    assert reading.readers() == []


def test_a_log_that_ends_early_is_read_again_by_another_reader(reading: Reading) -> None:
    """As where its node goes, or its log is rotated: what is still missing is asked for."""
    reading.says(told(2, is_whole=False))
    attached = reading.attach()
    assert numbers(attached) == [0, 1]
    assert attached is not None
    assert attached.link.last_words is None
    for after in (1, -1):  # also where nothing came at all
        reading.says(told(3, first=after + 1))
        assert numbers(reading.attach(after)) == [*range(after + 1, 3)]
    assert len(set(reading.readers())) == 3


@pytest.mark.parametrize("fails", ["pod", "program"])
def test_a_volume_that_can_not_be_read_is_tried_again_and_then_left(
    reading: Reading, fails: str
) -> None:
    """Nothing is measured again of which nobody knows whether it was measured."""
    reading.says(b"broadgauge: /kept: Input/output error\n")
    reading.phase = "Failed" if fails == "pod" else "Succeeded"
    words = "exit code 1" if fails == "pod" else "/kept: Input/output error"
    for _ in range(MOST_TRIES - 1):
        with pytest.raises(LinkLost, match=f"volume kept can't be read: .*{words}"):
            reading.attach()
    with pytest.raises(UncollectedError, match=words) as raised:
        reading.attach()
    assert "it stays there: `broadgauge run --resume` tries it again" in str(raised.value)
    assert len(set(reading.readers())) == MOST_TRIES


def test_a_quota_that_leaves_no_room_for_a_reader_leaves_what_was_kept(reading: Reading) -> None:
    reading.fake.script("POST", JOBS, refused(403, "Forbidden", "exceeded quota"))
    for form in [LinkLost] * (MOST_TRIES - 1) + [UncollectedError]:
        with pytest.raises(form, match="exceeded quota"):
            reading.attach()
