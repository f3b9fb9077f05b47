"""How does a plan become records? Launch by launch, each planned trial leaving exactly one record.

    for each planned launch, while trials of it are left:
        start the ranks of a launch           LaunchError: the first trial left gets a failed record
        for each trial left:
            run it, merge, judge, store      a failed one ends this life; the rest have another
        close the life
    when all are done, ask what next     more launches are stored as a part of the plan, and run

A case that would only fail again is skipped (giving_up.py), unless the plan says to keep going.
Every life uses up at least one trial, so a run ends. Trials that the store has are never run
again: resuming is running the same plan into the same store. PlatformError and RunFolderError end
the run and reach the caller; what is stored stays, and so does what runs elsewhere where it is not
heard or can't be stored now, or where an earlier life of the tool has begun it, and it may have
measured for hours. On Interrupt the trial under way leaves no record.
"""

import signal
from collections.abc import Sequence

from broadgauge.engine.backlog import Backlog
from broadgauge.engine.environment_changes import EnvironmentChanges
from broadgauge.engine.events import (
    LaunchEnded,
    LaunchStarting,
    Noted,
    PhaseBegan,
    PlanGrown,
    RecordWritten,
    RunEnded,
    RunStarted,
)
from broadgauge.engine.giving_up import not_run_again, why_given_up
from broadgauge.engine.growing import grown
from broadgauge.engine.interrupts import Interrupt
from broadgauge.engine.masking import masked_environment, masked_loss, masked_record
from broadgauge.engine.ports import Series, Services, Store
from broadgauge.engine.run_result import RunResult, count_results
from broadgauge.engine.trial import (
    TrialPlace,
    Unreadable,
    artifacts_of,
    lost_record,
    measured_record,
    merge_safely,
    next_launch_id,
    skipped_record,
)
from broadgauge.messages.rank import Artifact
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, RunFolderError, UncollectedError
from broadgauge.specs.launching import (
    Launch,
    LooksAhead,
    Platform,
    RunsWithoutTool,
    ShownPhase,
    TrialProgress,
    TrialRequest,
)
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.record import Record, Status, TrialError

MOST_LOST_LIVES = 3
"""In a row, of one planned launch; then its other trials are given up, not waited for."""
GOES_ON = "what runs elsewhere goes on without this tool: `broadgauge run --resume` collects it"


def run(plan: Plan, platform: Platform, store: Store, services: Services) -> RunResult:
    """Run what is planned and not yet stored. The caller closes the store; the platform is closed.

    Raises PlatformError and RunFolderError; and Interrupt, if one comes after the last trial.
    """
    runner = _Runner(plan, platform, store, services)
    interrupted_by: int | None = None
    try:
        runner.announce()
        runner.complete_all()
    except Interrupt as interrupt:
        interrupted_by = interrupt.signal_number
        if interrupted_by == signal.SIGHUP and isinstance(platform, RunsWithoutTool):
            platform.leave()  # the terminal is gone, and what runs elsewhere does not need it
    except Exception as error:
        with services.interrupts.shielded():
            _leave_after(error, platform, services)
        raise
    finally:
        with services.interrupts.shielded():
            platform.close()
    result = count_results(runner.plan, store.records, store.location, interrupted_by)
    services.observer(
        RunEnded(
            interrupted_by=interrupted_by,
            num_finished=result.num_ok + result.num_failed + result.num_skipped,
            num_trials=result.num_trials,
        )
    )
    return result


def _leave_after(error: Exception, platform: Platform, services: Services) -> None:
    if not isinstance(platform, RunsWithoutTool):
        return
    is_for_later = isinstance(error, (UncollectedError, RunFolderError))
    if platform.leave(only_found=not is_for_later):
        services.observer(Noted(text=GOES_ON))


class _Runner:
    """One run while it goes on."""

    def __init__(self, plan: Plan, platform: Platform, store: Store, services: Services) -> None:
        self._backlog = Backlog(plan, (record.record_id for record in store.records))
        self._platform = platform
        self._store = store
        self._services = services
        self._environment_changes = EnvironmentChanges(plan, store.records, store.environments)

    @property
    def plan(self) -> Plan:
        """As far as it has grown."""
        return self._backlog.plan

    def announce(self) -> None:
        """Say what is going to happen."""
        self._services.observer(
            RunStarted(
                location=self._store.location,
                num_trials=self._backlog.num_trials,
                num_finished=self._backlog.num_finished,
                remaining_s=self._backlog.remaining.seconds(),
                notes=self._platform.notes,
            )
        )

    def complete_all(self) -> None:
        """Every launch that is planned, and then what the plan grows by, until it grows no more."""
        num_done = 0
        while num_done < len(self.plan.launches):
            self._tell_ahead()
            for launch in self.plan.launches[num_done:]:
                self.complete(launch)
            num_done = len(self.plan.launches)
            self._grow()

    def _grow(self) -> None:
        services = self._services
        growth = services.grower(self.plan, self._store.records)
        if growth is None:
            return
        plan = grown(self.plan, growth, services.clock.unix_s())
        with services.interrupts.shielded():
            self._store.keep_growth(plan)
            added = self._backlog.grow(plan)
            self._environment_changes.follow_plan(plan)
        services.observer(
            PlanGrown(
                reason=growth.reason,
                num_launches=len(added),
                num_trials=self._backlog.num_trials,
                num_finished=self._backlog.num_finished,
                remaining_s=self._backlog.remaining.seconds(),
            )
        )

    def complete(self, launch: PlannedLaunch) -> None:
        """Give every trial of this launch its record, in as many lives as it takes."""
        num_lost = 0
        while left := self._worth_running(launch):
            life_id = self._next_life(launch)
            began_s = self._services.clock.unix_s()
            try:
                self._live(launch, life_id, left)
                num_lost = 0
            except LaunchError as error:
                num_lost += 1
                self._give_up(
                    launch,
                    life_id,
                    masked_loss(error, self._services.mask),
                    is_last=num_lost == MOST_LOST_LIVES,
                    began_unix_s=began_s,
                )

    def _worth_running(self, launch: PlannedLaunch) -> list[PlannedTrial]:
        """The launch's trials that are left; those that would only fail again are skipped."""
        left = self._backlog.left(launch)
        if self.plan.keep_going:
            return left
        hopeless = {
            trial.case_key: error
            for trial in left
            if (error := why_given_up(trial.case_key, self._store.records)) is not None
        }
        for trial in left:
            if trial.case_key in hopeless:
                self._skip(launch, trial, not_run_again(hopeless[trial.case_key]))
        if hopeless:
            self._tell_ahead()
        return [trial for trial in left if trial.case_key not in hopeless]

    def _skip(self, launch: PlannedLaunch, trial: PlannedTrial, reason: TrialError) -> None:
        place = self._place(launch, self._next_life(launch), trial)
        self._backlog.remaining.ran(place.case, 0.0, is_ok=False)
        self._write(place, skipped_record(place, reason, self._services.clock.unix_s()), {})

    def _tell_ahead(self) -> None:
        """Let a platform that can go on by itself know what will be asked of it."""
        if isinstance(self._platform, LooksAhead):
            ahead = [launch for launch in self.plan.launches if self._backlog.left(launch)]
            requests = [self._backlog.request(launch, self._next_life(launch)) for launch in ahead]
            self._platform.expect(requests)

    def _next_life(self, launch: PlannedLaunch) -> str:
        ids = {trial.trial_id for trial in launch.trials}
        stored = [record for record in self._store.records if record.record_id in ids]
        return next_launch_id(launch, stored)

    def _live(self, launch: PlannedLaunch, life_id: str, left: list[PlannedTrial]) -> None:
        """One life: its trials until they are done or one fails. Raises LaunchError."""
        services = self._services
        cases = tuple({trial.case_key: self._backlog.case(trial) for trial in left}.values())
        services.observer(LaunchStarting(launch_id=life_id, cases=cases, num_trials=len(left)))
        began_s = services.clock.monotonic_s()
        request = self._backlog.request(launch, life_id)
        life = self._platform.start(request, self._progress(life_id, None))
        try:
            self._backlog.remaining.started(cases[0], services.clock.monotonic_s() - began_s)
            environment = self._enter(life, cases)
            reason = self._run_trials(launch, life_id, life, environment)
        finally:
            with services.interrupts.shielded():
                life.close()
        services.observer(LaunchEnded(launch_id=life_id, reason=reason))

    def _run_trials(
        self, launch: PlannedLaunch, life_id: str, life: Launch, environment: str
    ) -> str | None:
        """Why did this life end before its trials were done? None: they are done."""
        for trial in self._backlog.left(launch):
            record = self._run_trial(self._place(launch, life_id, trial), life, environment)
            if record.status not in (Status.OK, Status.SKIPPED):
                return f"{trial.trial_id} failed"
            if not life.is_alive:
                return "its ranks ended"
        return None

    def _run_trial(self, place: TrialPlace, life: Launch, environment: str) -> Record:
        services = self._services
        began_s = services.clock.monotonic_s()
        request = TrialRequest(
            trial_id=place.planned.trial_id, case=place.case, seed=self.plan.seed
        )
        outcome = life.run_trial(request, self._progress(place.launch_id, place))
        peak_flops = services.peak_flops(place.case, life.environment)
        merged = merge_safely(services.merger, place.case, outcome, peak_flops)
        record = measured_record(place, outcome, merged, environment)
        judged = services.judge(place.case, record, merged.series)
        findings = (*outcome.findings, *judged)
        elapsed_s = services.clock.monotonic_s() - began_s
        self._backlog.remaining.ran(place.case, elapsed_s, is_ok=record.status is Status.OK)
        record = record.model_copy(update={"findings": findings})
        artifacts = () if isinstance(merged, Unreadable) else artifacts_of(outcome)
        return self._write(place, record, merged.series, artifacts)

    def _enter(self, life: Launch, cases: Sequence[Case]) -> str:
        """The hash of this life's environment, stored; a change is said aloud."""
        environment = masked_environment(life.environment, self._services.mask)
        with self._services.interrupts.shielded():
            name = self._store.add_environment(environment)
        changes = self._environment_changes.enter(environment, [case.key for case in cases])
        if changes:
            what = "; ".join(changes)
            self._services.observer(
                Noted(text=f"a new block begins, the environment changed: {what}")
            )
        return name

    def _give_up(
        self,
        launch: PlannedLaunch,
        life_id: str,
        error: LaunchError,
        *,
        is_last: bool,
        began_unix_s: float,
    ) -> None:
        """Fail the first trial left; after the last attempt, skip the others for its reason."""
        clock = self._services.clock
        first, *others = self._backlog.left(launch)
        place = self._place(launch, life_id, first)
        record = lost_record(place, error, began_unix_s, clock.unix_s())
        self._backlog.remaining.ran(place.case, 0.0, is_ok=False)
        self._write(place, record, {})
        reason = f"{first.trial_id} was not started"  # the record has said why
        self._services.observer(LaunchEnded(launch_id=life_id, reason=reason))
        if not is_last or record.error is None:
            return
        for trial in others:
            message = f"given up after {MOST_LOST_LIVES} launches: {record.error.message}"
            self._skip(launch, trial, record.error.model_copy(update={"message": message}))

    def _place(self, launch: PlannedLaunch, life_id: str, trial: PlannedTrial) -> TrialPlace:
        return TrialPlace(
            planned=trial,
            case=self._backlog.case(trial),
            launch_id=life_id,
            block=self._environment_changes.block(launch.block),
            position=self._backlog.position(trial),
        )

    def _write(
        self,
        place: TrialPlace,
        record: Record,
        series: Series,
        artifacts: Sequence[Artifact] = (),
    ) -> Record:
        record = masked_record(record, self._services.mask)
        with self._services.interrupts.shielded():
            stored = self._store.append(record, series, artifacts)
            self._backlog.finish(stored.record_id)
        self._services.observer(
            RecordWritten(
                case=place.case,
                record=stored,
                num_finished=self._backlog.num_finished,
                num_trials=self._backlog.num_trials,
                remaining_s=self._backlog.remaining.seconds(),
            )
        )
        return stored

    def _progress(self, life_id: str, place: TrialPlace | None) -> TrialProgress:
        def progress(phase: ShownPhase, detail: str) -> None:
            self._services.observer(
                PhaseBegan(
                    launch_id=life_id,
                    trial_id=None if place is None else place.planned.trial_id,
                    case=None if place is None else place.case,
                    phase=phase,
                    detail=self._services.mask(detail),
                )
            )

        return progress
