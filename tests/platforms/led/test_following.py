"""Proves what the tool does where the way to a leader breaks: nothing is lost, nothing twice."""

import pytest
from tests.platforms.led.fakes import FakeLink, fake_leader, fake_link

from broadgauge.messages.leader import JobsDone, TakeJobs
from broadgauge.platforms.led import following
from broadgauge.platforms.led.following import FollowedLeader, LeaderGone
from broadgauge.platforms.led.handle import LinkLost, NothingMore
from broadgauge.specs.errors import PlatformError


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for between tries."""
    monkeypatch.setattr(following, "AGAIN_AFTER_S", (0.0,))


def given(link: FakeLink) -> list[int]:
    """Generations of the jobs that came through."""
    return [each.generation for each in link.told if isinstance(each, TakeJobs)]


def test_a_leader_that_has_told_all_is_gone() -> None:
    leader = fake_leader(fake_link(JobsDone(), loss=NothingMore("it has ended")))
    leading = FollowedLeader.of(leader, -1, lambda _: None)
    assert leading.receive(1.0) == JobsDone()
    with pytest.raises(LeaderGone, match=r"^leader 1: it has ended$"):
        leading.receive(1.0)


def test_another_leader_in_its_place_is_not_followed() -> None:
    """Its numbers are not those of the one before."""
    leader = fake_leader(fake_link(leader="a"), fake_link(leader="b"))
    leading = FollowedLeader.of(leader, -1, lambda _: None)
    with pytest.raises(LeaderGone, match="another leader began in its place"):
        leading.receive(1.0)


def test_jobs_that_a_breaking_link_took_are_given_once_more() -> None:
    first, second = fake_link(generation=-1), fake_link(JobsDone(), generation=-1)
    first.refused = 1
    leading = FollowedLeader.of(fake_leader(first, second), -1, lambda _: None)
    leading.give(())
    assert (given(first), given(second)) == ([], [0])
    assert leading.receive(1.0) == JobsDone()


def test_jobs_that_did_come_through_are_not_given_again() -> None:
    first, second = fake_link(generation=-1), fake_link(JobsDone(), generation=0)
    leading = FollowedLeader.of(fake_leader(first, second), -1, lambda _: None)
    leading.give(())
    assert leading.receive(1.0) == JobsDone()
    assert (given(first), given(second)) == ([0], [])


def test_who_is_heard_and_can_not_be_told_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RECONNECT_LIMIT_S", -1.0)
    deaf = fake_link(generation=-1)
    deaf.refused = 9
    leading = FollowedLeader.of(fake_leader(deaf), -1, lambda _: None)
    with pytest.raises(PlatformError, match="leader 1, which leads the run, does not answer"):
        leading.give(())


def test_a_way_that_breaks_is_said_and_comes_back() -> None:
    said: list[str] = []
    leader = fake_leader(fake_link(), LinkLost("no route"), fake_link(JobsDone()))
    leading = FollowedLeader.of(leader, -1, said.append)
    assert leading.receive(1.0) == JobsDone()
    assert said == [
        "leader 1: the way broke; the run goes on there, trying again",
        "leader 1 does not answer: no route; trying again",
        "leader 1 answers again",
    ]
