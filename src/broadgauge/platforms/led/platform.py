"""Where do cases run with agents that a leader holds together? On hosts, in pods."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from broadgauge.messages.agent import LogText
from broadgauge.messages.leader import (
    Job,
    JobsDone,
    LifeBegins,
    LifeEnds,
    TakeJobs,
    TrialBegins,
)
from broadgauge.messages.preflight import PreflightDone, PreflightFinding, PreflightMode
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.led.allocation import Allocation, Say
from broadgauge.platforms.led.expected import Expected
from broadgauge.platforms.led.failures import AgentGone, LifeFailures
from broadgauge.platforms.led.following import FollowedLeader, LeaderGone
from broadgauge.platforms.led.handle import LeaderHandle
from broadgauge.platforms.led.launch import FollowedLaunch, ReportedLife, events, write_log
from broadgauge.platforms.led.notes import Notes
from broadgauge.platforms.led.orders import job_of
from broadgauge.platforms.led.preflight import preflight_words, write_preflight
from broadgauge.platforms.supervised import trial_order
from broadgauge.specs.case import Case
from broadgauge.specs.errors import BroadgaugeError, LaunchError, PlatformError, UncollectedError
from broadgauge.specs.launching import WAITING, LaunchRequest, TrialProgress
from broadgauge.specs.records.record import Phase

MOST_LOST = 5
"""Leaders or agents in a row, with no launch coming up between them; then the run is given up."""


class LedPlatform:
    """The agents of an allocation, whose leader the tool follows."""

    def __init__(
        self, folders: LaunchFolders, allocation: Allocation, preflight: PreflightMode = "no"
    ) -> None:
        """`preflight`: of all that a leader is given."""
        self._folders = folders
        self._allocation = allocation
        self._preflight_mode: PreflightMode = preflight
        self._notes = Notes(allocation.notes)
        self._failures = LifeFailures(folders, allocation)
        self._expected = Expected()
        self._leading: FollowedLeader | None = None
        self._life: ReportedLife | None = None
        """The last that was heard of: the leader may go on with it where the tool asks for
        another."""
        self._num_lost = 0
        self._last_loss: str | None = None
        """Why the leader before this one ended; None: this is the first."""
        self._has_started = False
        """A leader: what is found after that is of this life of the tool."""
        self._is_left = False
        self._show: Say = lambda _: None
        """What is waited for, and what has come of it."""
        allocation.tell_to(self._notes.say)
        self._programs = Programs()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know; it grows as launches start."""
        return self._notes.all

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        """The leader is given all of them at once, and goes on by itself."""
        self._expected.expect(requests)

    def start(self, request: LaunchRequest, progress: TrialProgress) -> FollowedLaunch:
        """Follow the leader up to the first trial that is asked for. Raises LaunchError."""
        self._notes.show = partial(progress, Phase.RENDEZVOUS)
        self._show = partial(progress, WAITING)
        progress(Phase.RENDEZVOUS, f"starting ranks on {request.cases[0].nodes} nodes")
        while True:
            try:
                return self._find(request, self._lead(request, progress))
            except LeaderGone as gone:
                self._lose(f"the leader was lost: {gone}")
            except AgentGone as gone:
                self._replace(str(gone))

    def preflight(self, requests: Sequence[LaunchRequest], show: Say) -> PreflightDone:
        """Instead of these launches: on all machines that they would use. Raises PlatformError."""
        self._preflight_mode, self._notes.show = "only", show
        jobs: list[Job] = []
        unplaced: list[PreflightFinding] = []
        for request in requests:
            try:
                jobs.append(self._job(request))
            except LaunchError as error:  # a machine has no interface of its network, say
                unplaced.append(PreflightFinding(kind="fails", text=str(error.message)))
        if not jobs:
            why = "; ".join(dict.fromkeys(each.text for each in unplaced))
            raise PlatformError(why or "no launch of this experiment is to run there")
        try:
            self._leading = leading = self._started(tuple(jobs), show)
            for event in events(leading, self._notes.show_waiting):
                if isinstance(event, PreflightDone):
                    each_once = dict.fromkeys(unplaced)
                    return replace(event, findings=(*each_once, *event.findings))
        except LeaderGone as gone:
            raise PlatformError(f"the leader was lost: {gone}") from gone
        raise AssertionError("events do not end")

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank, as a shell there would take them."""
        return self._allocation.rank_commands(request)

    def leave(self, *, only_found: bool = False) -> bool:
        """Let go: the run goes on there, and `run --resume` collects.

        A leader that was just started and is not heard yet is none to be left: it has measured
        next to nothing.
        """
        is_unheard = self._leading is None
        if self._is_left or (self._has_started and (only_found or is_unheard)):
            return False
        leading, self._leading, self._is_left = self._leading, None, True
        if leading is not None:
            leading.close()
            return True
        try:
            return self._allocation.find() is not None
        except BroadgaugeError:  # there is one, and it can't be looked for now
            return True

    def close(self) -> None:
        """End what runs there, and leave nothing; safe to call twice.

        Also the leader of an earlier life of the tool, where the run is over before it was asked.
        """
        leading, self._leading = self._leading, None
        if leading is not None:
            leading.close()
        leader = None if self._is_left else self._allocation.find()
        if leader is None:
            return
        if leader.stop():
            self._allocation.forget()
        else:
            self._notes.keep(f"{leader.name} may go on: nobody could tell whether it has ended")

    def _lead(self, request: LaunchRequest, progress: TrialProgress) -> FollowedLeader:
        """A leader that has this launch among its jobs. Raises LaunchError, LeaderGone."""

        def show(text: str) -> None:
            progress(WAITING, text)

        if self._leading is None:
            found = self._allocation.find()
            if found is not None:
                self._leading = self._attached(found, show)
                if self._leading is not None:
                    self._skip_unwanted(self._leading)
                    if self._leading.generation < 0:  # it was never given any
                        self._leading.give(self._jobs_from(request), self._preflight_mode)
                    return self._leading  # with what it has measured, and what it has left
        if self._leading is None:
            with self._telling_of_loss():
                self._leading = self._started(self._jobs_from(request), show)
        elif self._expected.has_grown:
            self._leading.give(self._jobs_from(request), self._preflight_mode)
        elif not self._expected.comes_to(request):
            self._leading.give((self._job(request),), self._preflight_mode)
        else:
            self._skip_unwanted(self._leading)
        return self._leading

    def _started(self, jobs: tuple[Job, ...], show: Say) -> FollowedLeader:
        """A leader of its own that has these. Raises LeaderGone, PlatformError."""
        first = TakeJobs(generation=0, jobs=jobs, preflight=self._preflight_mode)
        leader = self._allocation.start(first, show)
        self._has_started = True  # not before: another's may be in its place
        leading = _heard_first(leader, self._notes.say)
        if leading.generation < 0:
            leading.give(jobs, self._preflight_mode)
        return leading

    def _skip_unwanted(self, leading: FollowedLeader) -> None:
        unwanted = self._expected.take_unwanted()
        if unwanted:
            leading.skip(unwanted)

    @contextmanager
    def _telling_of_loss(self) -> Iterator[None]:
        """Where no other leader can follow, the error says what became of the one before."""
        try:
            yield
        except LaunchError:  # of one launch: the next may come up
            raise
        except PlatformError as error:
            if self._last_loss is not None:
                error.message = f"{error.message}\n  before that {self._last_loss}"
            raise

    def _attached(self, leader: LeaderHandle, show: Say) -> FollowedLeader | None:
        """The leader of an earlier life of the tool, with what it has measured meanwhile; None: it
        is gone. Raises PlatformError."""
        self._allocation.wait_for_found(show)
        try:
            return FollowedLeader.of(leader, -1, self._notes.say)
        except LeaderGone as gone:
            self._notes.keep(f"{gone}: what is left is run again")
            self._last_loss = f"the leader was lost: {gone}"
            with self._telling_of_loss():
                self._allocation.lose()
            return None

    def _jobs_from(self, request: LaunchRequest) -> tuple[Job, ...]:
        own, *later = self._expected.from_on(request)
        jobs = [self._job(own)]
        for each in later:
            with suppress(LaunchError):  # it is told when that launch is asked for
                jobs.append(self._job(each))
        self._expected.were_given()
        return tuple(jobs)

    def _job(self, request: LaunchRequest) -> Job:
        return job_of(request, self._allocation.seats_of, trial_order, self._programs)

    def _find(self, request: LaunchRequest, leading: FollowedLeader) -> FollowedLaunch:
        """Hear the leader up to the first trial that is left.

        Raises LaunchError, LeaderGone, AgentGone.
        """
        leading.stored()
        self._allocation.seats_of(request.cases[0])  # where it has none no leader was given it
        first = request.trials[0].trial_id
        life = self._life
        for event in events(leading, self._notes.show_waiting):
            match event:
                case LifeBegins(life_id=life_id) if self._expected.is_after(life_id, request):
                    leading.hold()  # what comes now counts, and is asked for later
                    raise LaunchError(
                        f"{request.launch_id} did not come up: the leader has given it up",
                        hint="what the launches before it failed of says why",
                    )
                case LifeBegins():
                    life = self._life = ReportedLife(
                        life_id=event.life_id,
                        agents=event.agents,
                        num_ranks=_num_ranks(request.cases[0]),
                        first_trial=event.first_trial,
                    )
                case LogText():
                    write_log(self._folders.logs, event)
                case TrialBegins(trial_id=trial_id) if life is not None and trial_id == first:
                    return self._launch(request, leading, life, event)
                case LifeEnds() if life is not None and life.was_to_begin(request):
                    self._failures.raise_for(life, request.cases[0], leading)
                case JobsDone():
                    leading.give(self._jobs_from(request), self._preflight_mode)
                case PreflightDone():
                    self._tell_preflight(event)
                case _ if life is not None:
                    life.take(event)
                case _:
                    pass
        raise AssertionError("events do not end")

    def _tell_preflight(self, done: PreflightDone) -> None:
        """At once, before anything is measured, and at the end. Raises RunFolderError."""
        for words in preflight_words(done):
            self._show(words)
            self._notes.keep(words)
        write_preflight(done, self._folders.logs)

    def _launch(
        self,
        request: LaunchRequest,
        leading: FollowedLeader,
        life: ReportedLife,
        begun: TrialBegins,
    ) -> FollowedLaunch:
        case = request.cases[0]
        for note in (*life.notes, *self._allocation.notes_on(case)):
            self._notes.keep(note)
        self._num_lost = 0
        return FollowedLaunch(
            leading=leading,
            life=life,
            known=self._allocation.environment(case, life),
            logs=self._failures.logs_of(life),
            begun=begun,
            left=[trial.trial_id for trial in request.trials],
            loss_words=self._failures.loss_words,
            lose_leader=lambda why: self._lose(f"the leader was lost: {why}"),
            take_note=self._notes.keep,
            look_round=self._notes.show_waiting,
        )

    def _replace(self, why: str) -> None:
        """An agent is gone: another leader and other agents have what is left. Raises
        PlatformError."""
        if self._leading is not None:
            self._leading.leader.stop()
        self._lose(why)

    def _lose(self, why: str) -> None:
        """The leader is gone: another one has what is left, unless somebody ended it for good.
        Raises PlatformError."""
        over = self._allocation.why_over()
        self._num_lost += 1
        self._last_loss = why
        self._notes.keep(why)
        if self._leading is not None:
            self._leading.close()
            self._leading = None
        with self._telling_of_loss():
            self._allocation.lose()
        if over is not None:
            raise PlatformError(over, hint="`broadgauge run --resume` runs what is left in another")
        if self._num_lost > MOST_LOST:
            raise PlatformError(
                f"{self._num_lost} times in a row, at last: {why}",
                hint="`broadgauge run --resume` goes on when the machines can be reached",
            )


def _heard_first(leader: LeaderHandle, say: Say) -> FollowedLeader:
    """One that was just started. Raises LeaderGone; PlatformError where it does not answer, which
    ends it: it has measured next to nothing, and may never be heard."""
    try:
        return FollowedLeader.of(leader, -1, say)
    except UncollectedError as error:
        raise PlatformError(error.message) from error


def _num_ranks(case: Case) -> int:
    return case.nodes if case.workload.is_under_torchrun else case.world_size
