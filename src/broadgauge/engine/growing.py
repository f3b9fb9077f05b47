"""How does a plan grow while it runs? When all of it is done, a search says what to run next.

What is added comes in blocks of its own after those that are planned: an even number first, so that
pairs of blocks stay mirrored (engine/schedule.py). Launches of cases that shared one before have
their number again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from broadgauge.engine.schedule import (
    CoresPerNode,
    LaunchGroup,
    group_cases,
    schedule,
    side_by_side,
)
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.plan import Plan, PlanGrowth
from broadgauge.specs.records.record import Record

MOST_BLOCKS = 1_000_000
"""Of a plan that may grow: a launch's id has six digits for its block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What to run next."""

    cases: tuple[Case, ...]
    """New ones, or known ones again."""
    num_blocks: int
    """Launches of each of them."""
    reason: str
    """Why these, in a sentence: it is stored with them."""
    trials_per_launch: int = 1
    cores_per_node: CoresPerNode = field(default_factory=dict)
    """Of shapes that the plan has not yet."""


class Grower(Protocol):
    """Asked when every planned launch is done: what next? None: nothing, the run is over."""

    def __call__(self, plan: Plan, records: Sequence[Record]) -> Growth | None: ...


def nothing_more(plan: Plan, records: Sequence[Record]) -> None:
    """Of a plan that is whole from the beginning."""
    del plan, records


def growable(plan: Plan) -> Plan:
    """The plan, with room for blocks; to be stored so before it runs."""
    return plan.model_copy(update={"most_blocks": MOST_BLOCKS})


def grown(plan: Plan, growth: Growth, unix_s: float) -> Plan:
    """The plan with what was added, which may be stored for good.

    Raises InputError where a plan can't grow, by so much, or by a shape of unknown cores.
    """
    first_block = _next_block(plan)
    if plan.most_blocks is None or first_block + growth.num_blocks > plan.most_blocks:
        raise InputError(f"the plan of {plan.experiment_name} has no room for more blocks")
    known = {case.key: case for case in plan.cases}
    cases = tuple({case.key: known.get(case.key, case) for case in growth.cases}.values())
    new = tuple(case for case in cases if case.key not in known)
    cores = {**_cores_of(plan), **growth.cores_per_node}
    _check_cores(cases, cores)
    groups = tuple(_numbered(plan, group_cases(cases, growth.trials_per_launch, cores)))
    added = schedule(side_by_side(groups), growth.num_blocks, plan.seed, first_block=first_block)
    return plan.model_copy(
        update={
            "cases": (*plan.cases, *new),
            "launches": (*plan.launches, *added),
            "growths": (
                *plan.growths,
                PlanGrowth(
                    grown_unix_s=unix_s,
                    reason=growth.reason,
                    num_cases=len(new),
                    num_launches=len(added),
                ),
            ),
        }
    )


def _next_block(plan: Plan) -> int:
    last = max((launch.block for launch in plan.launches), default=-1)
    return last + 1 + (last + 1) % 2


def _cores_of(plan: Plan) -> CoresPerNode:
    """As the launches so far had them."""
    cases = {case.key: case for case in plan.cases}
    return {
        (cases[trial.case_key].platform, cases[trial.case_key].shape): launch.cores_per_node
        for launch in plan.launches
        for trial in launch.trials
    }


def _check_cores(cases: Sequence[Case], cores: CoresPerNode) -> None:
    strange = next((case for case in cases if (case.platform, case.shape) not in cores), None)
    if strange is not None:
        raise InputError(f"{strange.label}: how many cores has a node of this shape?")


def _numbered(plan: Plan, groups: Sequence[LaunchGroup]) -> Iterator[LaunchGroup]:
    """Each group with the number that it had before, or the next one."""
    before = _group_numbers(plan)
    next_number = 1 + max(before.values(), default=-1)
    for group in groups:
        number = before.get(frozenset(case.key for case in group.cases))
        if number is None:
            number, next_number = next_number, next_number + 1
        yield replace(group, number=number)


def _group_numbers(plan: Plan) -> Mapping[frozenset[str], int]:
    """`b3.l7` is group 7, by the cases that it holds."""
    return {
        frozenset(trial.case_key for trial in launch.trials): int(launch.launch_id.split(".l")[1])
        for launch in plan.launches
    }
