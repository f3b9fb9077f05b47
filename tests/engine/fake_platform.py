"""A platform that says what a real one would, in no time: what happens is scripted, exactly.

    clock = FakeClock()
    platform = FakePlatform(clock, Script(failures={"b0.l0.t1": Failure(kind=ErrorKind.HUNG)}))
    run(plan, platform, store, services(clock))

Outcomes hold the frames and counters of real ranks, so that the real merger reads them.
`Script.time_s` gives the time of each step or iteration; `on_step` is called at each thing that
happens and may raise, as a signal's handler would.
"""

from tests.engine.fake_ranks import FakeRanks
from tests.engine.fake_script import START_S, Failure, FakeClock, Moment, Script, an_environment

from broadgauge.engine.ports import Observer, Services, unobserved
from broadgauge.merging.merge import merge
from broadgauge.specs.launching import LaunchRequest, TrialOutcome, TrialProgress, TrialRequest
from broadgauge.specs.records.record import Phase

__all__ = [
    "Failure",
    "FakeClock",
    "FakeLaunch",
    "FakePlatform",
    "Moment",
    "Script",
    "an_environment",
    "services",
]


class FakePlatform:
    """Counts what it was asked for; `num_alive` is 0 when nothing is left."""

    def __init__(self, clock: FakeClock, script: Script | None = None) -> None:
        self.clock = clock
        self.script = script or Script()
        self.requests: list[LaunchRequest] = []
        self.trials: list[str] = []
        self.num_alive = 0
        self.is_closed = False
        self.notes: tuple[str, ...] = ("nothing here is real",)

    def start(self, request: LaunchRequest, progress: TrialProgress) -> "FakeLaunch":
        self.requests.append(request)
        progress(Phase.RENDEZVOUS, request.launch_id)
        self.script.on_step(f"start {request.launch_id}")
        self.clock.advance(START_S)
        error = self.script.launch_errors.get(request.launch_id)
        if error is not None:
            raise error
        self.num_alive += 1
        return FakeLaunch(self, request)

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        return tuple(f"rank {rank}" for rank in range(request.cases[0].world_size))

    def close(self) -> None:
        self.is_closed = True


class FakeLaunch:
    def __init__(self, platform: FakePlatform, request: LaunchRequest) -> None:
        self._platform = platform
        self.request = request
        self.environment = platform.script.environment(request)
        self.is_alive = True
        self._is_closed = False

    def run_trial(self, request: TrialRequest, progress: TrialProgress) -> TrialOutcome:
        assert self.is_alive
        assert not self._is_closed
        assert request.case in self.request.cases
        platform, trial_id = self._platform, request.trial_id
        platform.trials.append(trial_id)
        failure = platform.script.failures.get(trial_id)
        ranks = FakeRanks(platform.clock, platform.script, request, progress, failure)
        outcome = ranks.outcome()
        if trial_id in platform.script.dying_after or (failure and not failure.keeps_ranks):
            self.is_alive = False
        return outcome

    def close(self) -> None:
        self._platform.script.on_step(f"close {self.request.launch_id}")
        if not self._is_closed:
            self._is_closed = True
            self._platform.num_alive -= 1


def services(clock: FakeClock, observer: Observer = unobserved) -> Services:
    """The real merger, no judge, the fake clock."""
    return Services(merger=merge, clock=clock, observer=observer)
