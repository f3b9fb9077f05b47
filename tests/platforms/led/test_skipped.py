"""Is what a leader measured taken as it is, where the engine wants fewer trials than it ran, or
counts lives otherwise than it does?"""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.platforms.led.fakes import (
    FakeAllocation,
    FakeLeader,
    FakeLink,
    Shown,
    hello,
    life_of,
    make_launch,
    make_led,
    measured,
    ran,
)

from broadgauge.messages.leader import AgentLost, JobsDone, LifeEnds, Stored, TrialBegins, TrialEnds
from broadgauge.platforms.led.following import Followed
from broadgauge.platforms.led.orders import Seats
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.records.record import Status

FIRST, NEXT = make_launch("b0.l0", 3), make_launch("b0.l1")
T0, T1, T2 = FIRST.trials


def left(request: LaunchRequest, first: int, life_id: str | None = None) -> LaunchRequest:
    """Its trials from this one on."""
    launch_id = life_id or request.launch_id
    return replace(request, launch_id=launch_id, trials=request.trials[first:])


def led_with(
    folder: Path, *said: Followed, expected: tuple[LaunchRequest, ...] = (FIRST, NEXT)
) -> tuple[LedPlatform, FakeLink, FakeAllocation]:
    link = FakeLink(hello(0), said)
    allocation = FakeAllocation(found=FakeLeader([link]))
    return make_led(folder, allocation, *expected), link, allocation


def fails(request: LaunchRequest, number: int) -> tuple[Followed, ...]:
    """A trial without what its ranks say at its end."""
    trial_id = request.trials[number].trial_id
    return (TrialBegins(trial_id=trial_id, unix_s=1.0), TrialEnds(trial_id=trial_id, unix_s=2.0))


def test_a_trial_that_failed_between_two_that_are_wanted_costs_neither(tmp_path: Path) -> None:
    """The leader ran it before it was told, ended its life for it, and went on in another."""
    wanted = replace(FIRST, trials=(T0, T2))
    again = replace(FIRST, launch_id="b0.l0r1", trials=(T2,))
    said = (
        *(life_of(FIRST), *ran(T0), *fails(FIRST, 1), LifeEnds(life_id="b0.l0")),
        *(life_of(again), *ran(T2), LifeEnds(life_id="b0.l0r1")),
    )
    led, _, allocation = led_with(tmp_path, *said, expected=(wanted, NEXT))
    launch = led.start(wanted, Shown())
    assert launch.run_trial(T0, Shown()).status is Status.OK
    assert not launch.is_alive
    launch.close()
    launch = led.start(again, Shown())
    assert launch.run_trial(T2, Shown()).status is Status.OK
    assert allocation.log == ["wait_for_found", "attach"]


def test_a_life_goes_on_past_a_trial_that_is_not_wanted(tmp_path: Path) -> None:
    wanted = replace(FIRST, trials=(T0, T2))
    said = (life_of(FIRST), *ran(T0), *ran(T1), *ran(T2))
    led, link, _ = led_with(tmp_path, *said, expected=(wanted, NEXT))
    launch = led.start(wanted, Shown())
    assert launch.run_trial(T0, Shown()).status is Status.OK
    assert launch.is_alive
    assert launch.run_trial(T2, Shown()).status is Status.OK
    assert launch.is_alive
    assert link.last == len(said) - 1


def test_a_life_that_does_not_come_up_costs_the_trial_that_it_was_to_begin_with(
    tmp_path: Path,
) -> None:
    """Whatever number the engine gives to it: it counts those that it skips."""
    again = left(FIRST, 1, "b0.l0r1")
    said = (
        *(life_of(FIRST), LifeEnds(life_id="b0.l0")),
        *(life_of(again), *ran(T1), *ran(T2)),
    )
    led, _, _ = led_with(tmp_path, *said)
    with pytest.raises(LaunchError, match="ranks did not come up"):
        led.start(replace(FIRST, launch_id="b0.l0r1"), Shown())
    launch = led.start(left(FIRST, 1, "b0.l0r2"), Shown())
    assert launch.run_trial(T1, Shown()).status is Status.OK
    assert launch.is_alive
    assert launch.run_trial(T2, Shown()).status is Status.OK


def test_a_launch_that_the_leader_gave_up_does_not_take_the_next_with_it(tmp_path: Path) -> None:
    """It had three lives before the tool was killed: a later one does not count them all."""
    led, link, _ = led_with(tmp_path, *measured(NEXT))
    with pytest.raises(LaunchError, match="the leader has given it up"):
        led.start(left(FIRST, 2, "b0.l0r3"), Shown())
    launch = led.start(NEXT, Shown())
    assert launch.run_trial(NEXT.trials[0], Shown()).status is Status.OK
    assert link.jobs_told == []
    assert Stored(number=0) not in link.told  # it was held, and is not stored yet


def test_what_was_run_and_is_not_wanted_is_passed_over(tmp_path: Path) -> None:
    led, _, _ = led_with(tmp_path, life_of(FIRST), *ran(T0), *measured(NEXT))
    led.expect([NEXT])
    assert led.start(NEXT, Shown()).run_trial(NEXT.trials[0], Shown()).status is Status.OK


def test_a_found_leader_that_was_never_given_jobs_is_given_them(tmp_path: Path) -> None:
    """The tool was killed just before; both would wait for each other."""
    link = FakeLink(hello(-1), measured(FIRST))
    led = make_led(tmp_path, FakeAllocation(found=FakeLeader([link])), FIRST, NEXT)
    led.start(FIRST, Shown())
    (given,) = link.jobs_told
    assert [job.job_id for job in given.jobs] == ["b0.l0", "b0.l1"]


def test_what_is_not_run_by_the_end_of_its_jobs_is_given_once_more(tmp_path: Path) -> None:
    led, link, _ = led_with(tmp_path, JobsDone(), *measured(FIRST))
    led.start(FIRST, Shown())
    (given,) = link.jobs_told
    assert [job.job_id for job in given.jobs] == ["b0.l0", "b0.l1"]


LOST = AgentLost(agent=1, message="it is not connected to the leader")


def test_what_was_measured_after_an_agent_was_lost_counts(tmp_path: Path) -> None:
    """Launches of fewer nodes went on without it, while nobody was there."""
    lost = (life_of(FIRST), LOST, LifeEnds(life_id="b0.l0"))
    led, _, allocation = led_with(tmp_path, *lost, *measured(NEXT))
    with pytest.raises(LaunchError, match="pod-1: it is not connected"):
        led.start(FIRST, Shown())
    assert led.start(NEXT, Shown()).run_trial(NEXT.trials[0], Shown()).status is Status.OK
    assert allocation.log == ["wait_for_found", "attach"]


def test_what_is_stored_ends_before_a_life_that_goes_on(tmp_path: Path) -> None:
    """Nobody could make anything of the rest of it without its beginning."""
    said = [*measured(NEXT), LifeEnds(life_id="b0.l1"), life_of(FIRST), *ran(T0), *ran(T1)]
    led, link, _ = led_with(tmp_path, *said, expected=(NEXT, FIRST))
    led.start(NEXT, Shown()).run_trial(NEXT.trials[0], Shown())
    led.start(FIRST, Shown()).run_trial(T0, Shown())
    led.start(left(FIRST, 1), Shown())
    stored = [order.number for order in link.told if isinstance(order, Stored)]
    assert stored[-1] == said.index(life_of(FIRST)) - 1


def test_a_launch_for_which_a_machine_lacks_something_costs_no_other(tmp_path: Path) -> None:
    class Lacks(FakeAllocation):
        def seats_of(self, case: Case) -> Seats:
            if case.nodes == 3:
                raise LaunchError("node-c has no interface of network ib")
            return super().seats_of(case)

    case = replace_nodes(NEXT, 3)
    link = FakeLink(hello(-1), [*measured(FIRST), JobsDone()])
    allocation = Lacks(FakeLeader([link]))
    led = make_led(tmp_path, allocation, FIRST, case)
    led.start(FIRST, Shown()).run_trial(T0, Shown())
    assert [job.job_id for job in link.jobs_told[0].jobs] == ["b0.l0"]
    for _ in range(2):
        with pytest.raises(LaunchError, match="no interface of network ib"):
            led.start(case, Shown())


def replace_nodes(request: LaunchRequest, nodes: int) -> LaunchRequest:
    case = request.cases[0].model_copy(update={"nodes": nodes})
    trials = tuple(replace(trial, case=case) for trial in request.trials)
    return replace(request, cases=(case,), trials=trials)


def test_a_leader_that_does_not_say_how_a_life_begins_is_matched_by_its_number(
    tmp_path: Path,
) -> None:
    """It is of an older version."""
    life = replace(life_of(FIRST), first_trial="")
    led, _, _ = led_with(tmp_path, life, LifeEnds(life_id="b0.l0"))
    with pytest.raises(LaunchError, match="ranks did not come up"):
        led.start(FIRST, Shown())
