"""In which order do trials run, and which of them share a launch?

A block is one pass over all cases; there are as many as the experiment has launches. Cases that
differ neither in ranks nor in variables share a launch: over Gloo the link is reshaped between
two trials, while NCCL caches what it saw of a network, so each network has its own launch; so has
each that is found on a cluster, as its interface is another. A command is a launch of its own with
one trial.

Order: A B C, C B A, B C A, A C B, … Each odd block runs the one before it backwards, so that any
two cases are in both orders equally often and a steady drift within blocks cancels; each pair of
blocks begins one further along. The seed says where the first begins. The two sides of a comparison
with a baseline, and a case's counterparts on several platforms, stand next to each other:
A a B b, b B a A, B b A a, …
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from broadgauge.engine.expected_time import start_s, trial_s
from broadgauge.specs.case import Case, CaseName, counterpart_name
from broadgauge.specs.plan import PlannedLaunch, PlannedTrial
from broadgauge.specs.platforms import PlatformKind

T = TypeVar("T")


CoresPerNode = Mapping[tuple[PlatformKind | None, str], int]
"""By platform (None: the run has one) and shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchGroup:
    """Cases that share a launch in every block."""

    number: int
    cases: tuple[Case, ...]
    trials_per_case: int
    cores_per_node: int


def group_cases(
    cases: Sequence[Case],
    trials_per_launch: int,
    cores_per_node: CoresPerNode,
    *,
    first_number: int = 0,
) -> tuple[LaunchGroup, ...]:
    """Which cases share a launch? Groups and cases keep the order given."""
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        groups.setdefault(_shared(case), []).append(case)
    return tuple(
        LaunchGroup(
            number=number,
            cases=tuple(group),
            trials_per_case=1 if group[0].workload.is_under_torchrun else trials_per_launch,
            cores_per_node=cores_per_node[group[0].platform, group[0].shape],
        )
        for number, group in enumerate(groups.values(), start=first_number)
    )


def _shared(case: Case) -> tuple[object, ...]:
    """What must be equal for two cases to share a launch."""
    if case.workload.is_under_torchrun:
        return ("one trial", case.key)
    variables = tuple(sorted(case.environment.items()))
    return (case.ranks, *_network_of_life(case), variables)


def _network_of_life(case: Case) -> tuple[object, ...]:
    """What of its network do ranks keep for life? NCCL all of it; Gloo looks again at each trial,
    but the NICs and their overlay are built with the nodes. Where a network is found is told to
    both when they start."""
    if case.backend == "nccl" or case.link is None or case.link.face is not None:
        return (case.plain_network_name,)
    return (case.link.num_nics, case.link.overlay)


def side_by_side(groups: Sequence[LaunchGroup]) -> tuple[tuple[LaunchGroup, ...], ...]:
    """Groups that must not be parted: those that hold the sides of any comparison.

    Sides are of two arms, or of two platforms. Variables may put cases of one group of a side into
    two of another: all stay together. In a unit the order given holds, baselines last.
    """
    units: list[tuple[LaunchGroup, ...]] = []
    for group in groups:
        names = _case_names(group)
        joined = [unit for unit in units if any(names & _case_names(each) for each in unit)]
        place = units.index(joined[0]) if joined else len(units)
        units = [unit for unit in units if unit not in joined]
        units.insert(place, (*(each for unit in joined for each in unit), group))
    return tuple(
        tuple(sorted(unit, key=lambda group: group.cases[0].arm == "baseline")) for unit in units
    )


def _case_names(group: LaunchGroup) -> set[CaseName]:
    return {counterpart_name(case) for case in group.cases}


def schedule(
    units: Sequence[Sequence[LaunchGroup]], num_blocks: int, seed: int, *, first_block: int = 0
) -> tuple[PlannedLaunch, ...]:
    """Every launch of every block, in the order in which they run; a unit's stay together."""
    return tuple(
        _launch(group, block, seed)
        for block in range(first_block, first_block + num_blocks)
        for unit in counterbalanced(units, block, seed)
        for group in (unit[::-1] if block % 2 else unit)
    )


def counterbalanced(items: Sequence[T], block: int, seed: int) -> tuple[T, ...]:
    """The order of `items` in this block. Source: this module's docstring."""
    start = (block // 2 + seed) % len(items)
    order = (*items[start:], *items[:start])
    return order[::-1] if block % 2 else order


def _launch(group: LaunchGroup, block: int, seed: int) -> PlannedLaunch:
    launch_id = f"b{block}.l{group.number}"
    order = [
        (case, trial)
        for trial in range(group.trials_per_case)
        for case in counterbalanced(group.cases, block, seed)
    ]
    return PlannedLaunch(
        launch_id=launch_id,
        block=block,
        cores_per_node=group.cores_per_node,
        trials=tuple(
            PlannedTrial(trial_id=f"{launch_id}.t{number}", case_key=case.key, trial=trial)
            for number, (case, trial) in enumerate(order)
        ),
        expected_s=round(start_s(group.cases[0]) + sum(trial_s(case) for case, _ in order), 3),
    )
