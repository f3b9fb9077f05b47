"""A leader, what leads to it, and the machines of a run, in words: nothing is started."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engine.fake_script import an_environment
from tests.platforms.launches import make_case, make_folders, make_request

from broadgauge.messages.agent import RankSaid
from broadgauge.messages.codec import encode
from broadgauge.messages.leader import (
    Job,
    LeaderHello,
    LeaderOrder,
    LifeBegins,
    LifeEvent,
    Spooled,
    TakeJobs,
    TrialBegins,
    TrialEnds,
)
from broadgauge.platforms.led.allocation import Allocation, Say
from broadgauge.platforms.led.following import Followed
from broadgauge.platforms.led.handle import (
    AttachedLink,
    LeaderHandle,
    LeaderStream,
    LinkLost,
)
from broadgauge.platforms.led.launch import ReportedLife
from broadgauge.platforms.led.orders import Seat, Seats, life_number
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest, ShownPhase, TrialRequest
from broadgauge.specs.records.record import Environment


class FakeTime:
    """In place of the module `time`: a wait is over at once, and time has passed."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def hello(generation: int, leader: str = "") -> LeaderHello:
    return LeaderHello(version="", pid=1, generation=generation, next_number=0, leader=leader)


@dataclass(slots=True)
class FakeLink:
    """One attachment: what is heard in it, and what the leader was told."""

    hello: LeaderHello | None
    script: Iterable[Followed | LinkLost | None] = ()
    """What comes, one after another; None: nothing in time. Nobody may wait beyond its end."""
    last_words: str | None = None
    taken: int | None = None
    """How many orders it takes before it breaks; None: all."""
    last: int = -1
    told: list[LeaderOrder] = field(default_factory=list)
    num_closed: int = 0
    _left: deque[Followed | LinkLost | None] = field(init=False)

    def __post_init__(self) -> None:
        self._left = deque(self.script)

    @property
    def link(self) -> LeaderStream:
        return self

    def send(self, order: LeaderOrder) -> None:
        if self.taken is not None and len(self.told) >= self.taken:
            raise LinkLost("the leader can't be told anything")
        self.told.append(order)

    def receive(self, timeout_s: float) -> Spooled | None:
        del timeout_s
        assert self._left, "nothing more is scripted"
        event = self._left.popleft()
        if isinstance(event, LinkLost):
            raise event
        if event is None:
            return None
        assert self.hello is not None
        given = [order.generation for order in self.told if isinstance(order, TakeJobs)]
        generation = max([self.hello.generation, *given])
        self.last += 1
        return Spooled(number=self.last, generation=generation, event=encode(event))

    def close(self) -> None:
        self.num_closed += 1

    @property
    def jobs_told(self) -> list[TakeJobs]:
        return [order for order in self.told if isinstance(order, TakeJobs)]


@dataclass(slots=True)
class FakeLeader:
    """Each time that it is attached to, the next of these comes; the last one for ever."""

    ways: Sequence[FakeLink | Exception]
    name: str = "pod-0"
    log: list[str] = field(default_factory=list)
    """What was done with it, in its order; an allocation has its own calls there, too."""
    afters: list[int] = field(default_factory=list)
    """From which event it was to be heard, each time."""

    def attach(self, after: int) -> AttachedLink:
        way = self.ways[min(len(self.afters), len(self.ways) - 1)]
        self.log.append("attach")
        self.afters.append(after)
        if isinstance(way, Exception):
            raise way
        way.last = after
        return way

    def stop(self) -> bool:
        self.log.append("stop")
        return True


class FakeAllocation:
    """Starts these leaders, one after another."""

    def __init__(
        self, *starts: FakeLeader | Exception, found: FakeLeader | None = None, **troubles: Any
    ) -> None:
        """`found`: the leader of an earlier life of the tool. `troubles`: by `wait_for_found` or
        `lose`, what it raises."""
        self.log: list[str] = []
        self.starts = list(starts)
        self.leader = found
        self.troubles = troubles
        self.jobs: list[tuple[Job, ...]] = []
        """What each leader was started with."""
        if found is not None:
            found.log = self.log

    notes: Iterable[str] = ()

    say: Say = print

    def tell_to(self, say: Say) -> None:
        self.say = say

    def find(self) -> FakeLeader | None:
        return self.leader

    def start(self, first: TakeJobs, show: Say) -> FakeLeader:
        self.log.append("start")
        self.jobs.append(first.jobs)
        self.say("the cluster warns")
        show("2 pods wait for a node")
        leader = self.starts.pop(0)
        if isinstance(leader, Exception):
            raise leader
        leader.log = self.log
        self.leader = leader
        return leader

    def wait_for_found(self, show: Say) -> None:
        self._do("wait_for_found")
        show("1 pod waits still")

    def forget(self) -> None:
        self.log.append("forget")
        self.leader = None

    over: str | None = None

    def why_over(self) -> str | None:
        return self.over

    def lose(self) -> None:
        self._do("lose")
        self.leader = None

    def _do(self, what: str) -> None:
        self.log.append(what)
        if what in self.troubles:
            raise self.troubles[what]

    def seats_of(self, case: Case) -> Seats:
        seat = Seat(num_cores=1, interfaces=("eth1",))
        return Seats(seats=(seat,) * case.nodes, master_address="10.0.0.1")

    def agent_name(self, number: int) -> str:
        return f"pod-{number}"

    def why_lost(self, number: int) -> str | None:
        return f"evicted from node-{number}"

    def notes_on(self, case: Case) -> Iterable[str]:
        del case
        return ()

    def environment(self, case: Case, life: ReportedLife) -> Environment:
        del case, life
        return an_environment()

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        del request
        return ()


_: tuple[type[LeaderHandle], type[LeaderStream], type[Allocation]] = (
    FakeLeader,
    FakeLink,
    FakeAllocation,
)


def make_launch(launch_id: str = "b0.l0", num_trials: int = 1) -> LaunchRequest:
    """On two nodes."""
    case = make_case("emulated")
    planned, _ = life_number(launch_id)
    trials = tuple(
        TrialRequest(trial_id=f"{planned}.t{number}", case=case, seed=1)
        for number in range(num_trials)
    )
    return make_request(case, launch_id=launch_id, trials=trials)


def coming_up(request: LaunchRequest) -> tuple[LifeEvent, ...]:
    """What a leader says up to the first trial."""
    return (
        life_of(request),
        TrialBegins(trial_id=request.trials[0].trial_id, unix_s=1.0),
    )


def life_of(request: LaunchRequest) -> LifeBegins:
    """It is to begin with the request's first trial."""
    first_trial = request.trials[0].trial_id
    return LifeBegins(life_id=request.launch_id, agents=(), first_trial=first_trial)


def measured(request: LaunchRequest) -> tuple[Followed, ...]:
    """And up to its end, which all ranks have reached."""
    _, *begun = ran(request.trials[0])
    return (*coming_up(request), *begun)


def ran(trial: TrialRequest) -> tuple[Followed, ...]:
    """A trial that all ranks have done."""
    done = (RankSaid(rank=rank, message={"type": "done"}) for rank in range(trial.case.world_size))
    ends = TrialEnds(trial_id=trial.trial_id, unix_s=2.0)
    return (TrialBegins(trial_id=trial.trial_id, unix_s=1.0), *done, ends)


def make_led(folder: Path, allocation: FakeAllocation, *requests: LaunchRequest) -> LedPlatform:
    """That expects these launches."""
    led = LedPlatform(make_folders(folder), allocation)
    led.expect(requests)
    return led


class Shown:
    """What the user is shown of a launch."""

    def __init__(self) -> None:
        self.lines: list[tuple[ShownPhase, str]] = []

    def __call__(self, phase: ShownPhase, detail: str) -> None:
        self.lines.append((phase, detail))

    def of(self, phase: ShownPhase) -> list[str]:
        return [detail for shown, detail in self.lines if shown == phase]
