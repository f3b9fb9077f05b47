"""A platform that can go on by itself is told what will be asked of it, and is asked just that."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.fake_platform import (
    Failure,
    FakeClock,
    FakeLaunch,
    FakePlatform,
    Script,
    services,
)
from tests.engine.making import (
    TRAIN,
    a_machine,
    a_plan,
    an_experiment,
    devices_of,
    make_folder,
    trial_ids,
)

from broadgauge.engine.events import Event, Noted
from broadgauge.engine.growing import Growth, growable
from broadgauge.engine.interrupts import Interrupt
from broadgauge.engine.plan import make_plan
from broadgauge.engine.run import GOES_ON, MOST_LOST_LIVES, run
from broadgauge.engine.several_platforms import SeveralPlatforms
from broadgauge.leader import job_progress
from broadgauge.leader.job_progress import JobProgress
from broadgauge.messages.leader import Job
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.errors import (
    InputError,
    LaunchError,
    PlatformError,
    RunFolderError,
    UncollectedError,
)
from broadgauge.specs.launching import (
    LaunchRequest,
    LooksAhead,
    TrialOutcome,
    TrialProgress,
    TrialRequest,
)
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import ErrorKind, Record


class Foreseeing(FakePlatform):
    """Keeps what it was told to expect."""

    expected: tuple[LaunchRequest, ...] = ()
    has_left = False
    goes_on = True
    has_found = False
    """What runs there was begun by an earlier life of the tool."""

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        self.expected = tuple(requests)

    def leave(self, *, only_found: bool = False) -> bool:
        self.has_left = self.has_found or not only_found
        return self.has_left and self.goes_on


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
    lives_of_leader = JobProgress.of(_job("b0.l1", platform))
    asked = [request for request in platform.requests if request.launch_id.startswith("b0.l1")]
    for request in asked:
        assert lives_of_leader.life_id == request.launch_id
        left = [trial.trial_id for trial in request.trials]
        assert [order.command.trial_id for order in lives_of_leader.left] == left
        num_ran = left.index(failing) + 1 if failing in left else len(left)
        lives_of_leader.lived(lives_of_leader.left[:num_ran])
    assert lives_of_leader.is_over


def test_a_leader_gives_up_as_the_engine_does(tmp_path: Path) -> None:
    names = ["b0.l1", "b0.l1r1", "b0.l1r2"]
    script = Script(launch_errors={name: LaunchError("no such program") for name in names})
    platform = ran(tmp_path, script)
    lives_of_leader = JobProgress.of(_job("b0.l1", platform))
    for request in (each for each in platform.requests if each.launch_id.startswith("b0.l1")):
        assert lives_of_leader.life_id == request.launch_id
        lives_of_leader.lost(tuple(lives_of_leader.left))
    assert lives_of_leader.is_over
    assert job_progress.MOST_LOST_LIVES == MOST_LOST_LIVES


@pytest.mark.parametrize(("number", "lives_on"), [(signal.SIGHUP, True), (signal.SIGINT, False)])
def test_a_closed_terminal_leaves_it_running_and_ctrl_c_does_not(
    tmp_path: Path, number: int, lives_on: bool
) -> None:
    def interrupt(moment: str) -> None:
        if moment == "start b0.l1":
            raise Interrupt(number)

    platform = ran(tmp_path, Script(on_step=interrupt))
    assert (platform.has_left, platform.is_closed) == (lives_on, True)


@pytest.mark.parametrize(
    ("error", "lives_on"),
    [
        (UncollectedError("the log of pod-0 can't be read"), True),
        (RunFolderError("the disk is full"), True),
        (PlatformError("a quota is used up"), False),
        (ValueError("a fault of ours"), False),
    ],
)
def test_what_can_not_be_heard_or_stored_now_is_left_where_it_runs(
    tmp_path: Path, error: Exception, *, lives_on: bool
) -> None:
    def fail(moment: str) -> None:
        if moment == "start b0.l1":
            raise error

    clock = FakeClock()
    platform = Foreseeing(clock, Script(on_step=fail))
    with make_folder(tmp_path, a_plan()) as store, pytest.raises(type(error)):
        run(store.plan, platform, store, services(clock))
    assert (platform.has_left, platform.is_closed) == (lives_on, True)


@pytest.mark.parametrize(
    "error",
    [
        InputError("train.py is gone"),
        PlatformError("a login failed"),
        UncollectedError("your credentials are not accepted"),
        ValueError("a bug"),
    ],
)
def test_what_an_earlier_life_of_the_tool_began_is_left_where_this_one_fails(
    tmp_path: Path, error: Exception
) -> None:
    """It may have measured for days, and nothing of it is collected yet."""

    def fail(moment: str) -> None:
        if moment == "start b0.l1":
            raise error

    clock, events = FakeClock(), list[Event]()
    platform = Foreseeing(clock, Script(on_step=fail))
    platform.has_found = True
    with make_folder(tmp_path, a_plan()) as store, pytest.raises(type(error)):
        run(store.plan, platform, store, services(clock, events.append))
    assert (platform.has_left, platform.is_closed) == (True, True)
    assert Noted(text=GOES_ON) in events


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_full_disk_says_that_the_run_goes_on_where_it_does(
    tmp_path: Path, *, goes_on: bool
) -> None:
    class Full(RunFolder):
        def append(self, *record: Any) -> Record:
            raise RunFolderError("the disk is full")

    clock, events = FakeClock(), list[Event]()
    platform = Foreseeing(clock)
    platform.goes_on = goes_on
    with make_folder(tmp_path, a_plan()) as made:
        path = Path(made.location)
    with Full.open_for_resume(path) as store, pytest.raises(RunFolderError):
        run(store.plan, platform, store, services(clock, events.append))
    assert platform.has_left
    assert (Noted(text=GOES_ON) in events) == goes_on


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


@pytest.mark.parametrize(
    ("moment", "number", "lives_on"),
    [
        ("start b0.l1", signal.SIGHUP, True),
        ("start b0.l0", signal.SIGHUP, False),
        ("start b0.l1", signal.SIGINT, False),
    ],
)
def test_of_several_platforms_the_one_that_runs_goes_on_without_a_terminal(
    tmp_path: Path, moment: str, number: int, *, lives_on: bool
) -> None:
    def interrupt(reached: str) -> None:
        if reached == moment:
            raise Interrupt(number)

    clock, script = FakeClock(), Script(on_step=interrupt)
    here, there = FakePlatform(clock, script), Foreseeing(clock, script)
    changes = {"platform": ["emulated", "local"], "cluster": {"shapes": ["1x1"], "device": "cpu"}}
    plan = make_plan(an_experiment(workloads=[TRAIN], **changes), devices_of(a_machine()))
    kinds = {case.key: case.platform for case in plan.cases}
    first, second = (kinds[launch.trials[0].case_key] for launch in plan.launches[:2])
    assert {first, second} == {"emulated", "local"}
    assert first is not None
    assert second is not None
    with make_folder(tmp_path, plan) as store:
        run(plan, SeveralPlatforms({first: here, second: there}), store, services(clock))
        num_before, path = len(store.records), Path(store.location)
    assert (there.has_left, here.is_closed, there.is_closed) == (lives_on, True, True)
    with RunFolder.open_for_resume(path) as store:
        clock = FakeClock()
        again = {first: FakePlatform(clock), second: Foreseeing(clock)}
        run(store.plan, SeveralPlatforms(again), store, services(clock))
        assert len(store.records) == sum(len(launch.trials) for launch in plan.launches)
    assert num_before < len(plan.launches)


def test_of_several_platforms_also_one_that_was_not_asked_is_left(tmp_path: Path) -> None:
    """What an earlier life of the tool has begun there is not collected yet."""
    clock = FakeClock()
    here, found, begun = FakePlatform(clock), Foreseeing(clock), Foreseeing(clock)
    found.has_found = True
    several = SeveralPlatforms({"emulated": here, "kubernetes": found, "hosts": begun})
    assert several.leave(only_found=True)
    assert (found.has_left, begun.has_left) == (True, False)


def test_of_several_platforms_none_goes_ahead_of_the_others() -> None:
    clock = FakeClock()
    both = SeveralPlatforms({"emulated": FakePlatform(clock), "local": Foreseeing(clock)})
    assert isinstance(Foreseeing(clock), LooksAhead)
    assert not isinstance(both, LooksAhead)


def test_a_record_says_in_which_life_it_was_measured(tmp_path: Path) -> None:
    """Its leader went on with the life that the tool knew, and `run --resume` asks for another."""

    class Leads(FakePlatform):
        def start(self, request: LaunchRequest, progress: TrialProgress) -> FakeLaunch:
            return GoneOn(self, replace(request, launch_id=request.launch_id.partition("r")[0]))

    class GoneOn(FakeLaunch):
        def run_trial(self, request: TrialRequest, progress: TrialProgress) -> TrialOutcome:
            outcome = super().run_trial(request, progress)
            return replace(outcome, launch_id=self.request.launch_id)

    plan = a_plan()
    with make_folder(tmp_path, plan) as store:
        script = Script(dying_after={"b0.l1.t0"})
        run(plan, Leads(FakeClock(), script), store, services(FakeClock()))
        lives_of = {record.record_id: record.launch_id for record in store.records}
    assert {trial: life.partition("r")[0] for trial, life in lives_of.items()} == lives_of
    assert lives_of["b0.l1.t1"] == "b0.l1"
