"""Is a run's leader started, waited for and replaced as it should be, and does the user see why?"""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from threading import Thread, get_ident

import pytest
from rich.console import Console
from tests.platforms.led.fakes import (
    FakeAllocation,
    FakeLeader,
    FakeLink,
    FakeTime,
    Shown,
    coming_up,
    hello,
    life_of,
    make_launch,
    make_led,
    measured,
)

from broadgauge.cli.progress import LiveLine, PlainLines
from broadgauge.engine.events import PhaseBegan, RunStarted
from broadgauge.messages.leader import (
    AgentLost,
    Job,
    LifeEnds,
    SkipTrials,
    Spooled,
    Stored,
    TakeJobs,
)
from broadgauge.platforms.led import following
from broadgauge.platforms.led.allocation import Say
from broadgauge.platforms.led.handle import LinkLost, NoLeader, NothingMore
from broadgauge.platforms.led.platform import MOST_LOST
from broadgauge.specs.errors import (
    InputError,
    LaunchError,
    PlatformError,
    RunFolderError,
    UncollectedError,
)
from broadgauge.specs.launching import WAITING, ShownPhase
from broadgauge.specs.records.record import ErrorKind, Phase, Status

LAUNCH, NEXT, LAST = map(make_launch, ("b0.l0", "b0.l1", "b0.l2"))
EVICTED = "pod-0 was evicted: low on memory"
LOST = f"the leader was lost: {EVICTED}"
DENIED = "pods is forbidden: exceeded quota"


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    made = FakeTime()
    monkeypatch.setattr(following, "time", made)
    return made


def leads(generation: int = 0) -> FakeLeader:
    """One that lives, and comes to the first trial."""
    return FakeLeader([FakeLink(hello(generation), measured(LAUNCH))])


def gone() -> FakeLeader:
    """One that has ended before anybody came."""
    return FakeLeader([NoLeader(EVICTED)])


def ends_early() -> FakeLeader:
    """One that is heard, and has ended before its first trial."""
    return FakeLeader([FakeLink(hello(0), [NothingMore(EVICTED)])])


def test_jobs_that_the_leader_had_at_once_are_not_given_again(tmp_path: Path) -> None:
    link = FakeLink(hello(0), measured(LAUNCH))
    allocation = FakeAllocation(FakeLeader([link]))
    led = make_led(tmp_path, allocation, LAUNCH, NEXT)
    led.start(LAUNCH, Shown())
    (jobs,) = allocation.jobs
    assert [job.job_id for job in jobs] == ["b0.l0", "b0.l1"]
    assert link.told == []


def test_a_leader_that_has_none_is_given_the_same_jobs(tmp_path: Path) -> None:
    link = FakeLink(hello(-1), measured(LAUNCH))
    allocation = FakeAllocation(FakeLeader([link]))
    make_led(tmp_path, allocation, LAUNCH, NEXT).start(LAUNCH, Shown())
    (jobs,) = allocation.jobs
    assert link.told == [TakeJobs(generation=0, jobs=jobs)]


def test_jobs_that_have_changed_since_come_in_place_of_those_it_had_at_once(tmp_path: Path) -> None:
    """A generation later than what the leader says of itself: it would take no other."""
    whole = [*measured(LAUNCH), LifeEnds(life_id="b0.l0")]
    link = FakeLink(hello(0), [*whole, *coming_up(NEXT)])
    led = make_led(tmp_path, FakeAllocation(FakeLeader([link])), LAUNCH)
    launch = led.start(LAUNCH, Shown())
    launch.run_trial(LAUNCH.trials[0], Shown())
    launch.close()
    led.expect([NEXT])
    led.start(NEXT, Shown())
    (given,) = link.jobs_told
    assert (given.generation, [job.job_id for job in given.jobs]) == (1, ["b0.l1"])
    stored = [order.number for order in link.told if isinstance(order, Stored)]
    assert stored == [len(whole) - 1]


@pytest.mark.parametrize("is_found", [False, True])
def test_what_a_leader_measured_counts_where_a_launch_is_wanted_no_more(
    tmp_path: Path, *, is_found: bool
) -> None:
    """It may be hours ahead: the tool was away, and gives up a case that crashed."""
    said = [*measured(LAUNCH), *measured(NEXT), *measured(LAST)]
    link = FakeLink(hello(0), said)
    leader = FakeLeader([link])
    allocation = FakeAllocation(found=leader) if is_found else FakeAllocation(leader)
    led = make_led(tmp_path, allocation, LAUNCH, NEXT, LAST)
    if not is_found:
        led.start(LAUNCH, Shown()).run_trial(LAUNCH.trials[0], Shown())
    led.expect([LAST])
    outcome = led.start(LAST, Shown()).run_trial(LAST.trials[0], Shown())
    assert outcome.status is Status.OK
    assert link.jobs_told == []
    (skip,) = [order for order in link.told if isinstance(order, SkipTrials)]
    assert skip.trial_ids == ("b0.l0.t0", "b0.l1.t0")


def test_a_leader_that_can_not_be_told_what_to_skip_runs_it_in_vain(tmp_path: Path) -> None:
    link = FakeLink(hello(0), [*measured(LAUNCH), *measured(NEXT)], taken=0)
    led = make_led(tmp_path, FakeAllocation(found=FakeLeader([link])), LAUNCH, NEXT)
    led.expect([NEXT])
    outcome = led.start(NEXT, Shown()).run_trial(NEXT.trials[0], Shown())
    assert outcome.status is Status.OK


def test_what_is_waited_for_is_shown_and_what_should_be_known_is_kept(tmp_path: Path) -> None:
    shown = Shown()
    led = make_led(tmp_path, FakeAllocation(leads()), LAUNCH)
    led.start(LAUNCH, shown)
    assert shown.of(WAITING) == ["2 pods wait for a node"]
    assert "the cluster warns" in shown.of(Phase.RENDEZVOUS)
    assert led.notes == ("the cluster warns",)  # what only passes is no note


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_line_says_what_is_waited_for(*, is_terminal: bool) -> None:
    screen = StringIO()
    console = Console(file=screen, force_terminal=is_terminal, width=100, color_system=None)
    event = PhaseBegan(
        launch_id="b0.l0", trial_id=None, case=None, phase=WAITING, detail="2 pods wait for a node"
    )
    with (LiveLine if is_terminal else PlainLines)(console) as display:
        display(RunStarted(location="r", num_trials=1, num_finished=0, remaining_s=1.0, notes=()))
        display(event)
    said = screen.getvalue()
    assert "waiting    2 pods wait for a node" in said.replace("\r", "\n")
    assert ("launch: waiting 2 pods wait for a node" in said) == is_terminal


def test_a_leader_that_is_found_is_waited_for_before_it_is_heard(tmp_path: Path) -> None:
    shown = Shown()
    allocation = FakeAllocation(found=leads())
    make_led(tmp_path, allocation, LAUNCH).start(LAUNCH, shown)
    assert allocation.log == ["wait_for_found", "attach"]
    assert shown.of(WAITING) == ["1 pod waits still"]


def test_what_a_found_leader_has_is_left_to_it(tmp_path: Path) -> None:
    link = FakeLink(hello(2), measured(LAUNCH))
    allocation = FakeAllocation(found=FakeLeader([link]))
    outcome = (
        make_led(tmp_path, allocation, LAUNCH)
        .start(LAUNCH, Shown())
        .run_trial(LAUNCH.trials[0], Shown())
    )
    assert outcome.status is Status.OK
    assert link.jobs_told == []


def test_where_the_machines_of_a_found_leader_do_not_come_the_run_ends(tmp_path: Path) -> None:
    never = PlatformError("job bench: after 600 s: 2 pods wait for a node")
    allocation = FakeAllocation(found=leads(), wait_for_found=never)
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError, match="after 600 s"):
        led.start(LAUNCH, Shown())
    assert allocation.log == ["wait_for_found"]
    led.close()
    assert allocation.log == ["wait_for_found", "stop", "forget"]


def test_a_found_leader_that_is_gone_has_a_successor(tmp_path: Path) -> None:
    allocation = FakeAllocation(leads(), found=gone())
    led = make_led(tmp_path, allocation, LAUNCH)
    led.start(LAUNCH, Shown())
    assert allocation.log == ["wait_for_found", "attach", "lose", "start", "attach"]
    assert f"{EVICTED}: what is left is run again" in led.notes


@pytest.mark.parametrize("begun", [gone, ends_early])
def test_a_leader_that_is_lost_before_its_first_trial_has_a_successor(
    tmp_path: Path, begun: Callable[[], FakeLeader]
) -> None:
    """What is left of it is deleted before another begins, and it is not looked for again."""
    allocation = FakeAllocation(begun(), leads())
    led = make_led(tmp_path, allocation, LAUNCH)
    led.start(LAUNCH, Shown())
    assert allocation.log == ["start", "attach", "lose", "start", "attach"]
    assert [note for note in led.notes if note.endswith(EVICTED)]


def test_a_leader_that_is_lost_in_a_trial_has_a_successor_that_gets_what_is_left(
    tmp_path: Path,
) -> None:
    first = FakeLink(hello(0), [*coming_up(LAUNCH), NothingMore(EVICTED)])
    allocation = FakeAllocation(
        FakeLeader([first]), FakeLeader([FakeLink(hello(0), coming_up(NEXT))])
    )
    led = make_led(tmp_path, allocation, LAUNCH, NEXT)
    launch = led.start(LAUNCH, Shown())
    error = launch.run_trial(LAUNCH.trials[0], Shown()).error
    assert error is not None
    assert (error.kind, error.message) == (ErrorKind.LAUNCHER_LOST, f"pod-0: {EVICTED}")
    assert not launch.is_alive
    led.start(NEXT, Shown())
    assert allocation.log == ["start", "attach", "lose", "start", "attach"]
    assert [[job.job_id for job in jobs] for jobs in allocation.jobs] == [
        ["b0.l0", "b0.l1"],
        ["b0.l1"],
    ]


def test_an_agent_that_is_lost_before_ranks_run_is_named_with_the_reason(tmp_path: Path) -> None:
    """In the words of whoever runs its machine."""
    events = (
        life_of(LAUNCH),
        AgentLost(agent=1, message="it closed the connection"),
        LifeEnds(life_id="b0.l0"),
        None,  # it looks for that agent
    )
    allocation = FakeAllocation(FakeLeader([FakeLink(hello(0), events)]), PlatformError(DENIED))
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError):
        led.start(LAUNCH, Shown())
    assert ("b0.l0: the agent on pod-1: it closed the connection; evicted from node-1") in led.notes


@pytest.mark.parametrize("is_found", [False, True])
def test_a_successor_that_can_not_start_says_what_was_lost_before(
    tmp_path: Path, *, is_found: bool
) -> None:
    denied = PlatformError(DENIED, hint="ask for more")
    starts = [denied] if is_found else [ends_early(), denied]
    allocation = FakeAllocation(*starts, found=gone() if is_found else None)
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError) as raised:
        led.start(LAUNCH, Shown())
    first, second, hint = str(raised.value).splitlines()
    assert first == DENIED
    assert second.startswith("  before that the leader was lost: ")
    assert second.endswith(EVICTED)
    assert hint == "  hint: ask for more"


def test_a_first_leader_that_can_not_start_says_that_alone(tmp_path: Path) -> None:
    led = make_led(tmp_path, FakeAllocation(PlatformError(DENIED)), LAUNCH)
    with pytest.raises(PlatformError) as raised:
        led.start(LAUNCH, Shown())
    assert str(raised.value) == DENIED


def test_of_several_that_were_lost_the_last_is_said(tmp_path: Path) -> None:
    second = FakeLink(hello(0), [*coming_up(LAUNCH), NothingMore("its node is gone")])
    starts = [ends_early(), FakeLeader([second]), PlatformError(DENIED)]
    led = make_led(tmp_path, FakeAllocation(*starts), LAUNCH, NEXT)
    led.start(LAUNCH, Shown()).run_trial(LAUNCH.trials[0], Shown())
    with pytest.raises(PlatformError, match="before that") as raised:
        led.start(NEXT, Shown())
    assert "its node is gone" in str(raised.value)
    assert EVICTED not in str(raised.value)


@pytest.mark.parametrize("is_found", [False, True])
def test_one_of_which_something_may_go_on_ends_the_run_and_says_how_it_was_lost(
    tmp_path: Path, *, is_found: bool
) -> None:
    kept = PlatformError("job bench was lost, and it can't be told whether it goes on")
    starts = [] if is_found else [ends_early()]
    allocation = FakeAllocation(*starts, found=gone() if is_found else None, lose=kept)
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError) as raised:
        led.start(LAUNCH, Shown())
    assert str(raised.value).startswith(f"{kept.args[0]}\n  before that the leader was lost: ")
    assert str(raised.value).endswith(EVICTED)
    assert allocation.log.count("start") == len(starts)
    assert allocation.find() is not None  # `run --resume` goes on with it


@pytest.mark.parametrize("is_agent", [False, True])
def test_one_that_somebody_ended_has_no_successor(tmp_path: Path, *, is_agent: bool) -> None:
    """What they took back is not asked for again, before somebody says so."""
    lost = (life_of(LAUNCH), AgentLost(agent=1, message="it is gone"))
    first = FakeLeader([FakeLink(hello(0), [*lost, LifeEnds(life_id="b0.l0"), None])])
    allocation = FakeAllocation(first if is_agent else ends_early(), leads())
    allocation.over = "job bench was deleted by somebody"
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError, match="deleted by somebody") as raised:
        led.start(LAUNCH, Shown())
    assert "--resume" in str(raised.value)
    assert allocation.log == ["start", "attach", *(["stop"] if is_agent else []), "lose"]


def test_one_that_was_ended_while_nobody_was_there_has_one_where_the_run_is_resumed(
    tmp_path: Path,
) -> None:
    allocation = FakeAllocation(leads(), found=gone())
    allocation.over = "job bench was deleted by somebody"
    make_led(tmp_path, allocation, LAUNCH).start(LAUNCH, Shown())
    assert allocation.log.count("start") == 1


def test_leaders_that_are_lost_one_after_another_are_given_up(tmp_path: Path) -> None:
    starts = [ends_early() for _ in range(MOST_LOST + 1)]
    allocation = FakeAllocation(*starts)
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError, match=rf"^6 times in a row, at last: .*{EVICTED}"):
        led.start(LAUNCH, Shown())
    assert allocation.log.count("start") == allocation.log.count("lose") == MOST_LOST + 1


def test_a_successor_that_nobody_can_hear_says_what_was_lost_before(tmp_path: Path) -> None:
    deaf = FakeLeader([LinkLost("the leader did not answer for 120 s")])
    led = make_led(tmp_path, FakeAllocation(ends_early(), deaf), LAUNCH)
    with pytest.raises(PlatformError, match=rf"does not answer: (?s:.*)before that .*{EVICTED}"):
        led.start(LAUNCH, Shown())


@pytest.mark.parametrize("is_found", [False, True])
def test_one_that_is_never_heard_is_left_where_it_may_have_measured(
    tmp_path: Path, *, is_found: bool
) -> None:
    """What was just started is ended: it holds its machines for nothing."""
    deaf = FakeLeader([LinkLost("the leader did not answer for 120 s")])
    allocation = FakeAllocation(deaf, found=deaf if is_found else None)
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError, match="does not answer") as raised:
        led.start(LAUNCH, Shown())
    assert isinstance(raised.value, UncollectedError) == is_found
    assert ("--resume" in str(raised.value)) == is_found


def test_a_run_that_is_left_leaves_its_leader_and_one_that_is_closed_ends_it(
    tmp_path: Path,
) -> None:
    for is_left, ends in ((True, []), (False, ["stop", "forget"])):
        allocation = FakeAllocation(leads())
        led = make_led(tmp_path, allocation, LAUNCH)
        led.start(LAUNCH, Shown())
        if is_left:
            assert led.leave()
            assert not led.leave()  # it has nothing more to let go of
        led.close()
        led.close()
        assert allocation.log == ["start", "attach", *ends]


def test_a_leader_that_was_found_is_left_whatever_fails_and_an_own_one_is_not(
    tmp_path: Path,
) -> None:
    """What an earlier life of the tool has begun may have measured for days."""
    never = PlatformError("job bench: after 600 s: 2 pods wait for a node")
    allocation = FakeAllocation(found=leads(), wait_for_found=never)
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError):
        led.start(LAUNCH, Shown())
    assert led.leave(only_found=True)
    led.close()
    assert allocation.log == ["wait_for_found"]
    allocation = FakeAllocation(leads())
    led = make_led(tmp_path, allocation, LAUNCH)
    led.start(LAUNCH, Shown())
    assert not led.leave(only_found=True)
    led.close()
    assert allocation.log == ["start", "attach", "stop", "forget"]


@pytest.mark.parametrize(
    "error",
    [PlatformError("a login failed"), RunFolderError("unreadable"), InputError("no context")],
)
def test_a_leader_that_can_not_be_looked_for_now_is_left(tmp_path: Path, error: Exception) -> None:
    class Away(FakeAllocation):
        def find(self) -> FakeLeader | None:
            raise error

    led = make_led(tmp_path, Away(), LAUNCH)
    with pytest.raises(type(error)):
        led.start(LAUNCH, Shown())
    assert led.leave(only_found=True)
    led.close()


def test_a_leader_that_was_just_started_and_can_not_be_stored_is_ended(tmp_path: Path) -> None:
    """It has measured next to nothing, and would hold its GPUs for nobody."""
    allocation = FakeAllocation(FakeLeader([RunFolderError("the disk is full")]))
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(RunFolderError):
        led.start(LAUNCH, Shown())
    assert not led.leave()
    led.close()
    assert allocation.log == ["start", "attach", "stop", "forget"]


def test_what_may_go_on_is_said_at_the_end(tmp_path: Path) -> None:
    class Stubborn(FakeLeader):
        def stop(self) -> bool:
            super().stop()
            return False

    allocation = FakeAllocation(Stubborn([FakeLink(hello(0), measured(LAUNCH))]))
    led = make_led(tmp_path, allocation, LAUNCH)
    led.start(LAUNCH, Shown())
    led.close()
    assert led.notes[-1] == "pod-0 may go on: nobody could tell whether it has ended"
    assert allocation.log[-1] == "stop"  # the run folder still knows of it


def test_what_other_threads_say_is_shown_by_the_runs_own(tmp_path: Path) -> None:
    """What shows it is not made for several."""

    class Talks(FakeLink):
        def receive(self, timeout_s: float) -> Spooled | None:
            thread = Thread(target=allocation.say, args=("the API server does not answer",))
            thread.start()
            thread.join()
            return super().receive(timeout_s)

    threads, shown = set[int](), Shown()

    def show(phase: ShownPhase, detail: str) -> None:
        threads.add(get_ident())
        shown(phase, detail)

    allocation = FakeAllocation(FakeLeader([Talks(hello(0), measured(LAUNCH))]))
    led = make_led(tmp_path, allocation, LAUNCH)
    led.start(LAUNCH, show).run_trial(LAUNCH.trials[0], show)
    assert threads == {get_ident()}
    said = shown.of(Phase.RENDEZVOUS)
    assert said.count("the API server does not answer") == len(measured(LAUNCH))
    assert "the API server does not answer" in led.notes


def test_a_trial_that_not_all_ranks_have_done_is_not_measured(tmp_path: Path) -> None:
    """Its leader had no room for what they said before its end."""
    told = [event for event in measured(LAUNCH) if getattr(event, "rank", None) != 1]
    led = make_led(tmp_path, FakeAllocation(FakeLeader([FakeLink(hello(0), told)])), LAUNCH)
    outcome = led.start(LAUNCH, Shown()).run_trial(LAUNCH.trials[0], Shown())
    assert outcome.status is not Status.OK
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.LAUNCHER_LOST


def test_ranks_that_do_not_end_in_time_cost_their_launch_alone(tmp_path: Path) -> None:
    """The leader goes on with their agent: what it has measured since counts."""
    slow = AgentLost(agent=1, message="its ranks did not end in time", is_connected=True)
    said = [life_of(LAUNCH), slow, LifeEnds(life_id="b0.l0"), *measured(NEXT)]
    allocation = FakeAllocation(found=FakeLeader([FakeLink(hello(0), said)]))
    led = make_led(tmp_path, allocation, LAUNCH, NEXT)
    with pytest.raises(LaunchError, match="pod-1: its ranks did not end in time"):
        led.start(LAUNCH, Shown())
    outcome = led.start(NEXT, Shown()).run_trial(NEXT.trials[0], Shown())
    assert outcome.status is Status.OK
    assert allocation.log == ["wait_for_found", "attach"]


def test_a_leader_that_was_in_the_place_of_another_is_left(tmp_path: Path) -> None:
    class Taken(FakeAllocation):
        def start(self, jobs: tuple[Job, ...], show: Say) -> FakeLeader:
            super().start(jobs, show)
            raise PlatformError("it is there already")

    allocation = Taken(leads())
    led = make_led(tmp_path, allocation, LAUNCH)
    with pytest.raises(PlatformError):
        led.start(LAUNCH, Shown())
    assert led.leave(only_found=True)
    led.close()
    assert allocation.log == ["start"]
