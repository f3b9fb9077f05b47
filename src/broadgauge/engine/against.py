"""Which cases of another run are repeated beside an experiment's own?

Two runs at two times can't be told from two states of the machine. So the baseline's experiment is
planned again on this machine, and its cases run in the same blocks as the experiment's, in the arm
`baseline`, with their own commands' folder.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broadgauge.engine.kinds.registry import in_engine
from broadgauge.specs.case import Case, CaseName, case_name
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.plan import BaselineRun
from broadgauge.specs.time_limits import TimeLimits

FEWEST_LAUNCHES = 3
"""Below, nothing can be told: results/statistics.py, FEWEST_FOR_A_VERDICT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """The stored run to compare with, and the experiment that its folder holds."""

    run: BaselineRun
    experiment: Experiment
    notes: tuple[str, ...] = ()
    """What to know of the stored run, in sentences."""


def baseline_cases(
    candidate: Sequence[Case],
    baseline: Sequence[Case],
    *,
    is_same_folder: bool,
    is_gated: bool = False,
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The baseline's cases that the experiment has too, in its order; and what to know of the rest.

    A case that the experiment alone has is run without a partner; one that the baseline alone has
    is not run. Raises InputError where no case is in both, and where a gate would hold each case
    against itself: what was edited in one folder runs in both arms.
    """
    of_baseline = {case_name(case): case for case in baseline}
    of_candidate = {case_name(case): case for case in candidate}
    both = [name for name in of_candidate if name in of_baseline]
    if not both:
        raise InputError(
            "no case of the experiment is in the baseline too: "
            f"{_listed(candidate)} here, {_listed(baseline)} there",
            hint="cases match by the names of workload and network, the shape and the backend",
        )
    notes = [
        *_alone(of_candidate, of_baseline, "this experiment", "it is run without a partner"),
        *_alone(of_baseline, of_candidate, "the baseline", "it is not run"),
    ]
    twins = [
        of_candidate[name]
        for name in both
        if of_candidate[name].key == of_baseline[name].key
        and (is_same_folder or not in_engine(of_candidate[name].workload).uses_folder)
    ]
    if is_gated and len(twins) == len(both):
        raise InputError(
            "--fail-above: both sides have the same settings and the same folder, so what is there "
            "now would be compared with itself",
            hint="keep the earlier state in another checkout (`git worktree add ../before main`), "
            "run it there, and name that run with --against",
        )
    if twins:
        notes.append(
            f"the same on both sides, settings and folder: {_listed(twins)}; a difference would "
            "be of the moments, not of a change"
        )
    in_arm = (of_baseline[name].model_copy(update={"arm": "baseline"}) for name in both)
    return tuple(in_arm), tuple(notes)


def only_in_baseline(candidate: Sequence[Case], baseline: Sequence[Case]) -> tuple[str, ...]:
    """Labels of what the baseline has and this experiment has not."""
    names = {case_name(case) for case in candidate}
    return tuple(case.label for case in baseline if case_name(case) not in names)


def _alone(
    cases: dict[CaseName, Case], others: dict[CaseName, Case], where: str, fate: str
) -> list[str]:
    return [
        f"{case.label} is in {where} only: {fate}"
        for name, case in cases.items()
        if name not in others
    ]


def _listed(cases: Iterable[Case]) -> str:
    return ", ".join(case.label for case in cases)


def num_launches(experiment: Experiment, baseline: Experiment) -> tuple[int, tuple[str, ...]]:
    """How many launches has each case? The larger of both, at least as many as a verdict needs."""
    wanted = max(experiment.launches, baseline.launches)
    launches = max(wanted, FEWEST_LAUNCHES)
    if launches == experiment.launches:
        return launches, ()
    why = "the baseline's number" if launches == wanted else "fewer can't tell anything"
    return launches, (f"{launches} launches of each case, not {experiment.launches}: {why}",)


def longer_limits(a: TimeLimits, b: TimeLimits) -> TimeLimits:
    """Of each phase the longer one: no side is ended early for the other's sake."""
    of_a, of_b = a.model_dump(), b.model_dump()
    return TimeLimits(**{phase: max(of_a[phase], of_b[phase]) for phase in of_a})
