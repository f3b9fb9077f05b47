"""A platform that can go on by itself is told what will be asked of it, and is asked just that."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.fake_platform import Failure, FakeClock, FakePlatform, Script, services
from tests.engine.making import a_plan, make_folder, trial_ids

from broadgauge.engine.growing import Growth, growable
from broadgauge.engine.interrupts import Interrupt
from broadgauge.engine.run import MOST_LOST_LIVES, run
from broadgauge.engine.several_platforms import SeveralPlatforms
from broadgauge.leader import lives
from broadgauge.leader.lives import Lives
from broadgauge.messages.leader import Job
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import LaunchRequest, LooksAhead
from broadgauge.specs.plan import Plan
from broadgauge.specs.record import ErrorKind, Record


class Foreseeing(FakePlatform):
    """Keeps what it was told to expect."""

    expected: tuple[LaunchRequest, ...] = ()
    has_left = False

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        self.expected = tuple(requests)

    def leave(self) -> None:
        self.has_left = True


def ran(folder: Path, script: Script | None = None) -> Foreseeing:
    platform = Foreseeing(FakeClock(), script)
    with make_folder(folder, a_plan()) as store:
        run(store.plan, platform, store, services(platform.clock))
    return platform


def test_what_is_expected_is_what_is_asked_for(tmp_path: Path) -> None:
    platform = ran(tmp_path)
    assert list(platform.expected) == platform.requests
    told = [trial.trial_id for request in platform.expected for trial in request.trials]
    assert told == trial_ids(a_plan()) == platform.trials


@pytest.mark.parametrize("failing", ["b0.l1.t0", "b0.l1.t1"])
def test_a_leader_goes_on_after_a_failure_as_the_engine_does(tmp_path: Path, failing: str) -> None:
    script = Script(failures={failing: Failure(kind=ErrorKind.CRASHED)})
    platform = ran(tmp_path, script)
    lives_of_leader = Lives.of(_job("b0.l1", platform))
    asked = [request for request in platform.requests if request.launch_id.startswith("b0.l1")]
    for request in asked:
        assert lives_of_leader.life_id == request.launch_id
        left = [trial.trial_id for trial in request.trials]
        assert [order.command.trial_id for order in lives_of_leader.left] == left
        lives_of_leader.lived(left.index(failing) + 1 if failing in left else len(left))
    assert lives_of_leader.is_over


def test_a_leader_gives_up_as_the_engine_does(tmp_path: Path) -> None:
    names = ["b0.l1", "b0.l1r1", "b0.l1r2"]
    script = Script(launch_errors={name: LaunchError("no such program") for name in names})
    platform = ran(tmp_path, script)
    lives_of_leader = Lives.of(_job("b0.l1", platform))
    for request in (each for each in platform.requests if each.launch_id.startswith("b0.l1")):
        assert lives_of_leader.life_id == request.launch_id
        lives_of_leader.lost()
    assert lives_of_leader.is_over
    assert lives.MOST_LOST_LIVES == MOST_LOST_LIVES


@pytest.mark.parametrize(("number", "lives_on"), [(signal.SIGHUP, True), (signal.SIGINT, False)])
def test_a_closed_terminal_leaves_it_running_and_ctrl_c_does_not(
    tmp_path: Path, number: int, lives_on: bool
) -> None:
    def interrupt(moment: str) -> None:
        if moment == "start b0.l1":
            raise Interrupt(number)

    platform = ran(tmp_path, Script(on_step=interrupt))
    assert (platform.has_left, platform.is_closed) == (lives_on, True)


def _job(name: str, platform: Foreseeing) -> Job:
    from tests.leader.allocations import trial

    (request,) = (each for each in platform.expected if each.launch_id == name)
    trials = tuple(trial(each.trial_id) for each in request.trials)
    return Job(job_id=name, first_life=0, num_ranks=1, orders=(), trials=trials)


def test_what_a_plan_grows_by_is_told_before_it_is_asked_for(tmp_path: Path) -> None:
    platform = Foreseeing(FakeClock())

    def once_more(plan: Plan, records: Sequence[Record]) -> Growth | None:
        return None if plan.growths else Growth(cases=plan.cases[:1], num_blocks=2, reason="x")

    with make_folder(tmp_path, growable(a_plan())) as store:
        run(store.plan, platform, store, replace(services(platform.clock), grower=once_more))
        added = [launch.launch_id for launch in store.plan.launches[-2:]]
    assert [request.launch_id for request in platform.expected] == added
    assert list(platform.expected) == platform.requests[-2:]


def test_of_several_platforms_none_goes_ahead_of_the_others() -> None:
    clock = FakeClock()
    both = SeveralPlatforms({"emulated": FakePlatform(clock), "local": Foreseeing(clock)})
    assert isinstance(Foreseeing(clock), LooksAhead)
    assert not isinstance(both, LooksAhead)
