"""What will be run, in which order, and how long should it take?"""

from broadgauge.specs.base import StoredModel
from broadgauge.specs.case import Case
from broadgauge.specs.cost import Cost
from broadgauge.specs.hypothesis import Hypothesis, PublishedFigure
from broadgauge.specs.time_limits import TimeLimits


class PlannedTrial(StoredModel):
    trial_id: str
    """`<launch_id>.t<number>`, unique in the run."""
    case_key: str
    trial: int
    """0, 1, … within the launch and case."""


class PlannedLaunch(StoredModel):
    """A set of ranks from start to end; its trials run in this order."""

    launch_id: str
    """`b<block>.l<group>`, unique in the run; the same group of cases has the same number in every
    block."""
    block: int
    """The pass over all cases that it belongs to; blocks are compared pair by pair."""
    trials: tuple[PlannedTrial, ...]
    cores_per_node: int = 1
    """Resolved, so that a run resumed elsewhere asks for the same."""
    expected_s: float


class BaselineRun(StoredModel):
    """The stored run whose cases are repeated in this one, in the arm `baseline`."""

    run: str
    """Its folder, as given."""
    experiment_name: str
    started_unix_s: float
    working_folder: str
    """Where its user's commands run."""
    fail_above_ratio: float | None = None
    """The slowdown that the run is to fail above, 0.03 for 3 %; None: it is only shown."""
    only_there: tuple[str, ...] = ()
    """Labels of its cases that the experiment has not: they are not run, and nothing is compared
    with them."""


class PlanGrowth(StoredModel):
    """Launches that were added when all that was planned was done."""

    grown_unix_s: float
    reason: str
    """Why these, as the search says it."""
    num_cases: int
    """New ones."""
    num_launches: int


class Plan(StoredModel):
    """The seed, the cases and the schedule; stored as plan.json before anything runs."""

    schema_version: int = 1
    experiment_name: str
    description: str = ""
    seed: int
    limits: TimeLimits = TimeLimits()
    keep_going: bool = False
    """Run also what failed alike before (engine/giving_up.py)."""
    cases: tuple[Case, ...]
    launches: tuple[PlannedLaunch, ...]
    expected_s: float
    """Of what was planned at first."""
    working_folder: str = "."
    """Where the user's commands run and relative paths start: the experiment file's folder."""
    hypotheses: tuple[Hypothesis, ...] = ()
    published: tuple[PublishedFigure, ...] = ()
    cost: Cost | None = None
    """As the experiment says it; None: nothing."""
    baseline: BaselineRun | None = None
    most_blocks: int | None = None
    """Blocks that it may grow to; None: it is whole, and has those that its launches name."""
    growths: tuple[PlanGrowth, ...] = ()
    """What was added while it ran, the first first; its cases and launches are among the others."""
    notes: tuple[str, ...] = ()
    """What was resolved or left out, in sentences: `one GPU for 2 ranks: CPUs are used`."""

    @property
    def is_imported(self) -> bool:
        """Did other programs measure it (`broadgauge import`)?"""
        return any(case.imported is not None for case in self.cases)

    def case(self, key: str) -> Case:
        return next(case for case in self.cases if case.key == key)
