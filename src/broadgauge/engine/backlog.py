"""What of a plan is still to be run, and how long will that take? It grows as the plan does."""

from collections.abc import Iterable, Sequence

from broadgauge.engine.pace import Remaining
from broadgauge.engine.trial import positions
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest, TrialRequest
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial


class Backlog:
    """A plan, less the trials that have their record."""

    def __init__(self, plan: Plan, finished: Iterable[str]) -> None:
        """`finished`: ids of trials that are stored, of this plan or not."""
        self.remaining = Remaining()
        self._finished = set(finished)
        self._take(plan)
        self._expect(plan.launches)

    def _take(self, plan: Plan) -> None:
        self.plan = plan
        self._cases = {case.key: case for case in plan.cases}
        self._positions = positions(plan)

    def _expect(self, launches: Sequence[PlannedLaunch]) -> None:
        for launch in launches:
            self.remaining.expect([self.case(trial) for trial in self.left(launch)])

    def grow(self, plan: Plan) -> Sequence[PlannedLaunch]:
        """The plan has grown to this one; gives the launches that are new."""
        added = plan.launches[len(self.plan.launches) :]
        self._take(plan)
        self._expect(added)
        return added

    def finish(self, trial_id: str) -> None:
        """It has its record."""
        self._finished.add(trial_id)

    def case(self, trial: PlannedTrial) -> Case:
        return self._cases[trial.case_key]

    def position(self, trial: PlannedTrial) -> int:
        """Its place among all trials of its block."""
        return self._positions[trial.trial_id]

    def left(self, launch: PlannedLaunch) -> list[PlannedTrial]:
        """The launch's trials without a record, in order."""
        return [trial for trial in launch.trials if trial.trial_id not in self._finished]

    @property
    def num_trials(self) -> int:
        """In all."""
        return len(self._positions)

    @property
    def num_finished(self) -> int:
        """Of this plan's."""
        return len(self._finished & self._positions.keys())

    def request(self, launch: PlannedLaunch, life_id: str) -> LaunchRequest:
        """What is left of this launch, in one life."""
        trials = tuple(
            TrialRequest(trial_id=trial.trial_id, case=self.case(trial), seed=self.plan.seed)
            for trial in self.left(launch)
        )
        return LaunchRequest(
            launch_id=life_id,
            cases=tuple({trial.case.key: trial.case for trial in trials}.values()),
            cores_per_node=launch.cores_per_node,
            limits=self.plan.limits,
            trials=trials,
        )
