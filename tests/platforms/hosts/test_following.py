"""A tool that follows a leader: what if the way breaks, the leader ends, or a host is gone?"""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.fake_script import an_environment
from tests.platforms.launches import make_case, quiet

from broadgauge.messages.agent import PhaseExpired, RankSaid
from broadgauge.messages.codec import encode
from broadgauge.messages.frames import FrameReader, FrameWriter
from broadgauge.messages.leader import (
    AgentLost,
    JobsDone,
    LeaderEvent,
    LeaderGivesUp,
    LeaderHello,
    Spooled,
    Stored,
    TrialBegins,
    TrialEnds,
)
from broadgauge.messages.vocabulary import Phase
from broadgauge.platforms.hosts import platform
from broadgauge.platforms.hosts.allocation import AttachedLeader, attach
from broadgauge.platforms.hosts.leader_place import LeaderPlace
from broadgauge.platforms.hosts.platform import HostsLeader
from broadgauge.platforms.launch_logs import LaunchLogs, ReadLogs
from broadgauge.platforms.led import following
from broadgauge.platforms.led.following import Followed, FollowedLeader, LeaderGone
from broadgauge.platforms.led.handle import LinkLost, NoLeader
from broadgauge.platforms.led.launch import FollowedLaunch, ReportedLife
from broadgauge.platforms.led.leader_link import ByteStream, LeaderLink
from broadgauge.specs.launching import TrialRequest
from broadgauge.specs.records.record import ErrorKind, TrialError

PLACE = LeaderPlace(host="node0", python="p", folder="f", zip_hash="z")


class FakeWay:
    """Each attachment hears what is scripted for it, and then the connection ends."""

    def __init__(self, folder: Path, *attachments: Sequence[LeaderEvent]) -> None:
        self.folder, self.left = folder, list(attachments)
        self.num_made = 0

    def attach(self, place: LeaderPlace, after: int) -> AttachedLeader:
        if not self.left:
            raise NoLeader(f"the leader on {place.host} has ended")
        self.num_made += 1
        said, written = self.folder / f"said{self.num_made}", self.folder / f"to{self.num_made}"
        frames = FrameWriter(f"leader{self.num_made}")
        said.write_bytes(b"".join(map(frames.write, self.left.pop(0))))
        reading = os.open(said, os.O_RDONLY)
        writing = os.open(written, os.O_WRONLY | os.O_CREAT)
        link = LeaderLink(ByteStream(reading=reading, writing=writing), after)
        try:
            link.wait_for_hello(1)
        except LinkLost:
            link.close()
            raise
        return _Attached(process=None, link=link)  # type: ignore[arg-type]

    def told(self, number: int) -> list[str]:
        """Types of what the leader was told in an attachment."""
        data = (self.folder / f"to{number}").read_bytes()
        return [received.message["type"] for received in FrameReader().feed(data)[0]]


class _Attached(AttachedLeader):
    def close(self) -> None:
        self.link.close()


def hello(generation: int) -> LeaderHello:
    return LeaderHello(version="", pid=1, generation=generation, next_number=0)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(following, "AGAIN_AFTER_S", (0.0,))
    return []


def lead(way: FakeWay, said: list[str], monkeypatch: pytest.MonkeyPatch) -> FollowedLeader:
    monkeypatch.setattr(platform, "attach", way.attach)
    return FollowedLeader.of(HostsLeader(PLACE), -1, said.append)


def test_jobs_that_a_broken_connection_took_are_given_again(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    way = FakeWay(tmp_path, [hello(-1)], [hello(-1)], [hello(0)])
    leading = lead(way, said, monkeypatch)
    leading.give(())
    with pytest.raises(LeaderGone):
        leading.receive(5)
    assert [way.told(number) for number in (1, 2, 3)] == [
        ["attach", "take_jobs"],
        ["attach", "take_jobs"],
        ["attach"],  # it says that it has them
    ]


def test_a_first_try_that_reaches_nobody_is_repeated_and_said(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    leading = lead(FakeWay(tmp_path, [], [hello(3)]), said, monkeypatch)
    assert leading.generation == 3
    assert said == ["node0 does not answer: the connection to the leader ended; trying again"]
    leading.close()


def test_a_leaders_last_words_say_why_it_ends(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = LeaderGivesUp(message="/tmp: No space left on device")
    leading = lead(FakeWay(tmp_path, [hello(0), words]), said, monkeypatch)
    with pytest.raises(LeaderGone, match=r"^node0: /tmp: No space left on device$"):
        leading.receive(5)


FAKE_SSH = """\
#!{python}
import sys
sys.stdout.write({hello!r})
sys.stdout.flush()
for line in sys.stdin.buffer:  # until the tool lets go; each order has an answer
    sys.stdout.write({answer!r})
    sys.stdout.flush()
"""


def test_a_way_that_is_given_up_does_not_take_the_next_one_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one's descriptors have the same numbers."""
    frames = FrameWriter("leader")
    spooled = Spooled(number=0, generation=0, event=encode(JobsDone()))
    words = {"hello": frames.write(hello(0)).decode(), "answer": frames.write(spooled).decode()}
    ssh = tmp_path / "ssh"
    ssh.write_text(FAKE_SSH.format(python=sys.executable, **words))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    attached = attach(PLACE, -1)
    for _ in range(2):
        attached.close()
        attached = attach(PLACE, -1)
        gc.collect()
        attached.link.send(Stored(number=0))
        assert attached.link.receive(20) == spooled
    attached.close()


class FakeLeading:
    """Events as a leader would tell them."""

    def __init__(self, events: Iterator[Followed]) -> None:
        self.events = events

    def receive(self, timeout_s: float) -> Followed:
        del timeout_s
        return next(self.events)


LOST = AgentLost(agent=1, message="it said nothing for 60 s")
PEER = "Connection closed by peer [10.80.0.2]:3741"
MARK = PhaseExpired(phase=Phase.MEASURE, rank=0, message="rank 0 was silent", waits_at="a:end")
HANGS = PhaseExpired(phase=Phase.MEASURE, rank=0, message="rank 0 was silent", waits_at=None)


def error_after(folder: Path, *events: Any) -> TrialError | None:
    begins = TrialBegins(trial_id="t", unix_s=1.0)
    told = iter([*events, TrialEnds(trial_id="t", unix_s=2.0)])
    case = make_case("emulated")
    launch = FollowedLaunch(
        leading=FakeLeading(told),  # type: ignore[arg-type]
        life=ReportedLife(life_id="l", agents=(), num_ranks=2),
        known=an_environment(),
        logs=LaunchLogs(folder=folder, launch_id="l", read=lambda paths: ReadLogs()),
        begun=begins,
        left=["t"],
        loss_words=lambda lost: f"the agent on node{lost.agent}: {lost.message}",
        lose_leader=lambda why: None,
        take_note=lambda note: None,
    )
    return launch.run_trial(TrialRequest(trial_id="t", case=case, seed=1), quiet).error


def failed(words: str) -> RankSaid:
    return RankSaid(rank=0, message={"type": "failed", "kind": "crashed", "message": words})


@pytest.mark.parametrize("seen", [failed(PEER), failed("Socket Timeout"), MARK])
def test_a_host_that_is_gone_is_the_cause_of_what_others_miss(tmp_path: Path, seen: Any) -> None:
    error = error_after(tmp_path, seen, LOST)
    assert error is not None
    assert error.kind is ErrorKind.LAUNCHER_LOST
    assert error.message.startswith(
        "the agent on node1: it said nothing for 60 s; before that rank 0"
    )


@pytest.mark.parametrize("seen", [failed("CUDA out of memory"), HANGS])
def test_a_rank_that_knows_a_cause_is_believed_before_an_agent_is_missed(
    tmp_path: Path, seen: Any
) -> None:
    error = error_after(tmp_path, seen, LOST)
    assert error is not None
    assert error.kind is not ErrorKind.LAUNCHER_LOST
    assert error.rank == 0
