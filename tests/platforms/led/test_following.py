"""A leader that is followed: what becomes of orders and events when the way to it breaks?"""

from pathlib import Path

import pytest
from tests.platforms.led.fakes import (
    FakeAllocation,
    FakeLeader,
    FakeLink,
    FakeTime,
    Shown,
    hello,
    make_launch,
    make_led,
    measured,
)

from broadgauge.messages.leader import JobsDone, Stored, TakeJobs
from broadgauge.platforms.led import following
from broadgauge.platforms.led.following import (
    FIRST_ATTACH_LIMIT_S,
    RECONNECT_LIMIT_S,
    FollowedLeader,
    LeaderGone,
)
from broadgauge.platforms.led.handle import LinkLost, NoLeader, NothingMore
from broadgauge.specs.errors import UncollectedError
from broadgauge.specs.records.record import Status

CUT = LinkLost("the log ended")
DEAF = LinkLost("nobody answers")
JOBS = TakeJobs(generation=0, jobs=())


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    made = FakeTime()
    monkeypatch.setattr(following, "time", made)
    return made


def follow(*ways: FakeLink | Exception) -> tuple[FollowedLeader, FakeLeader, list[str]]:
    """The leader as it is followed, the leader, and what was said of it."""
    leader, said = FakeLeader(ways), list[str]()
    return FollowedLeader.of(leader, -1, said.append), leader, said


def test_a_leader_that_has_said_all_is_gone_and_need_not_be_stopped() -> None:
    link = FakeLink(hello(0), [NothingMore("it has ended")])
    leading, leader, said = follow(link)
    with pytest.raises(LeaderGone, match=r"^pod-0: it has ended$"):
        leading.receive(5)
    assert leader.log == ["attach"]
    assert link.num_closed == 1
    assert said == []


def test_a_leader_with_last_words_is_stopped_before_it_is_gone() -> None:
    """Its agents may go on for a while, and disturb its successor's."""
    link = FakeLink(hello(0), [CUT], last_words="no space left")
    leading, leader, _ = follow(link)
    with pytest.raises(LeaderGone, match=r"^pod-0: no space left$"):
        leading.receive(5)
    assert leader.log == ["attach", "stop"]


def test_another_leader_in_its_place_is_not_followed() -> None:
    """It numbers its events from 0 again."""
    second = FakeLink(hello(0, "b"), [JobsDone()])
    leading, _, said = follow(FakeLink(hello(0, "a"), [JobsDone(), CUT]), second)
    assert leading.receive(5) == JobsDone()
    with pytest.raises(LeaderGone, match=r"^pod-0: another leader began in its place$"):
        leading.receive(5)
    assert second.num_closed == 1
    assert said == ["pod-0: the log ended; trying to hear it again"]


@pytest.mark.parametrize("names", [("a", "a"), ("", "a"), ("a", "")])
def test_the_same_leader_is_heard_on_from_the_event_after_the_last(names: tuple[str, str]) -> None:
    """Also one that does not say which it is."""
    first = FakeLink(hello(0, names[0]), [JobsDone(), JobsDone(), CUT])
    leading, leader, said = follow(first, DEAF, FakeLink(hello(0, names[1]), [JobsDone()]))
    assert [leading.receive(5) for _ in range(3)] == [JobsDone()] * 3
    assert leader.afters == [-1, 1, 1]
    assert first.num_closed == 1
    assert said == [
        "pod-0: the log ended; trying to hear it again",
        "pod-0 does not answer: nobody answers; trying again",
        "pod-0 answers again",
    ]


def test_one_that_has_ended_meanwhile_is_gone() -> None:
    leading, _, _ = follow(FakeLink(hello(0), [CUT]), DEAF, NoLeader("pod-0 has completed"))
    with pytest.raises(LeaderGone, match=r"^pod-0 has completed$"):
        leading.receive(5)


def test_jobs_that_a_link_took_along_as_it_broke_are_sent_again_once() -> None:
    ways = [
        FakeLink(hello(-1), [CUT]),
        FakeLink(hello(-1), [CUT]),
        FakeLink(hello(0), [CUT]),
        FakeLink(hello(0), [JobsDone()]),
    ]
    leading, _, _ = follow(*ways)
    leading.give(())
    assert leading.receive(5) == JobsDone()
    assert [way.told for way in ways] == [[JOBS], [JOBS], [], []]  # it says that it has them


def test_jobs_that_can_not_be_sent_are_sent_on_the_next_way() -> None:
    ways = [FakeLink(hello(-1), taken=0), FakeLink(hello(-1), taken=0), FakeLink(hello(-1))]
    leading, _, _ = follow(*ways)
    leading.give(())
    assert [way.told for way in ways] == [[], [], [JOBS]]


def test_jobs_that_came_although_sending_failed_are_not_sent_again() -> None:
    ways = [FakeLink(hello(-1), taken=0), FakeLink(hello(0), [JobsDone()])]
    leading, _, _ = follow(*ways)
    leading.give(())
    assert leading.receive(5) == JobsDone()
    assert [way.told for way in ways] == [[], []]


def test_jobs_that_were_taken_along_are_sent_before_what_is_told_next() -> None:
    ways = [FakeLink(hello(-1), [JobsDone()], taken=1), FakeLink(hello(-1))]
    leading, _, _ = follow(*ways)
    leading.give(())
    assert leading.receive(5) == JobsDone()
    leading.stored()
    assert [way.told for way in ways] == [[JOBS], [JOBS, Stored(number=0)]]


def test_what_is_stored_is_told_once() -> None:
    link = FakeLink(hello(0), [JobsDone(), JobsDone()])
    leading, _, _ = follow(link)
    leading.stored()
    leading.receive(5)
    leading.receive(5)
    leading.stored()
    leading.stored()
    assert link.told == [Stored(number=1)]


def test_events_of_jobs_before_are_passed_over() -> None:
    """They were on their way when other jobs were given."""
    link = FakeLink(hello(3), [JobsDone(), None])
    leading, _, _ = follow(link)
    leading.generation = 4
    assert leading.receive(5) is None
    assert link.last == 0


def test_jobs_that_an_earlier_life_of_the_tool_gave_are_followed_too() -> None:
    """It was killed before it wrote down that they had come."""
    link = FakeLink(hello(1), [JobsDone(), JobsDone()])
    leading, _, _ = follow(link)
    leading.generation = 0
    assert leading.receive(5) == JobsDone()
    leading.give(())
    assert link.jobs_told == [TakeJobs(generation=2, jobs=())]


def test_a_leader_that_is_heard_and_takes_nothing_is_given_up_at_the_limit(time: FakeTime) -> None:
    leading, leader, _ = follow(FakeLink(hello(-1), taken=0))
    with pytest.raises(UncollectedError, match=r"^pod-0, .* can't be told anything") as raised:
        leading.give(())
    assert RECONNECT_LIMIT_S < time.now_s < 2 * RECONNECT_LIMIT_S
    assert "--resume" in str(raised.value)
    assert "stop" not in leader.log  # it may live on


@pytest.mark.parametrize("does", ["give", "receive"])
def test_one_that_nobody_can_hear_any_more_is_given_up_at_the_limit(
    time: FakeTime, does: str
) -> None:
    leading, leader, _ = follow(FakeLink(hello(-1), [CUT], taken=0), DEAF)
    act = {"give": lambda: leading.give(()), "receive": lambda: leading.receive(5)}[does]
    with pytest.raises(UncollectedError, match="does not answer: nobody answers"):
        act()
    assert RECONNECT_LIMIT_S < time.now_s < 2 * RECONNECT_LIMIT_S
    assert "stop" not in leader.log


def test_one_that_was_never_heard_is_given_up_sooner(time: FakeTime) -> None:
    with pytest.raises(UncollectedError, match="does not answer: nobody answers"):
        follow(DEAF)
    assert FIRST_ATTACH_LIMIT_S < time.now_s < RECONNECT_LIMIT_S


def test_one_that_says_what_no_leader_says_is_none() -> None:
    link = FakeLink(hello(0), [Stored(number=1)])  # type: ignore[list-item]
    leading, _, _ = follow(link)
    with pytest.raises(LeaderGone, match="the leader said what no leader says"):
        leading.receive(5)


def test_a_trial_goes_on_where_the_way_broke_and_nothing_is_given_again(tmp_path: Path) -> None:
    launch = make_launch()
    events = measured(launch)
    ways = [FakeLink(hello(0, "a"), [*events[:2], CUT]), FakeLink(hello(0, "a"), events[2:])]
    led = make_led(tmp_path, FakeAllocation(FakeLeader(ways)), launch)
    shown = Shown()
    outcome = led.start(launch, shown).run_trial(launch.trials[0], shown)
    assert outcome.status is Status.OK
    assert [way.jobs_told for way in ways] == [[], []]
    assert led.notes[-2:] == (
        "pod-0: the log ended; trying to hear it again",
        "pod-0 answers again",
    )
