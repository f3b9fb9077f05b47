"""Where did the time of a job's steps go? From all its ranks' traces, or from one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from broadgauge.specs.errors import InputError
from broadgauge.traces.attribution.activity import TracedActivity, activity_of
from broadgauge.traces.attribution.collectives import collective_times
from broadgauge.traces.attribution.first_reduction import first_reduction
from broadgauge.traces.attribution.matching import Matching, match
from broadgauge.traces.attribution.parts import part_times, parts_of, rank_steps
from broadgauge.traces.attribution.slowdown import compute_slowdowns
from broadgauge.traces.attribution.stragglers import stragglers
from broadgauge.traces.attribution.tracking import tracks_of
from broadgauge.traces.attribution.windows import StepWindow, windows_of
from broadgauge.traces.explanation import (
    PartTimes,
    RankExplanation,
    StepPart,
    TraceExplanation,
)
from broadgauge.traces.trace import RankTrace

_PLACE = {part: place for place, part in enumerate(StepPart)}


def explain(
    traces: Iterable[RankTrace],
    *,
    step_numbers: Sequence[int] | None = None,
    ranks_per_node: int | None = None,
) -> TraceExplanation:
    """Takes the steps apart that all traces have, or of these the wanted ones.

    Raises InputError: two traces of one rank, no common step, ranks that do not agree in their
    collectives.
    """
    ranks = _by_rank(traces)
    windows = _common(ranks, step_numbers)
    numbers = tuple(window.number for window in windows[0])
    matching = match(ranks, numbers)
    activities = [
        activity_of(trace, own, matching.transfer_start_ns[place])
        for place, (trace, own) in enumerate(zip(ranks, windows, strict=True))
    ]
    parts = [
        parts_of(activity, has_gpu=trace.has_gpu)
        for trace, activity in zip(ranks, activities, strict=True)
    ]
    explained = _explained(ranks, windows, activities, parts)
    exposed, waiting = (
        [part == _PLACE[kind] for part in parts]
        for kind in (StepPart.EXPOSED_COMMUNICATION, StepPart.STRAGGLER_WAIT)
    )
    return TraceExplanation(
        ranks=explained,
        step_numbers=numbers,
        is_all_ranks=_is_all(ranks),
        has_steps=all(trace.steps for trace in ranks),
        stragglers=stragglers(ranks, activities, waiting, matching, explained),
        collectives=collective_times(
            ranks,
            activities,
            exposed,
            matching,
            step_numbers=numbers,
            is_compared=len(ranks) > 1,
            ranks_per_node=ranks_per_node,
        ),
        first_reduction=first_reduction(ranks[0], windows[0], matching, 0),
        notes=tuple(_notes(ranks, matching)),
    )


def _by_rank(traces: Iterable[RankTrace]) -> tuple[RankTrace, ...]:
    """In order of their number; those that have none get the ones that are free."""
    found = list(traces)
    if not found:
        raise InputError("no trace to explain")
    taken = Counter(trace.rank for trace in found if trace.rank is not None)
    twice = [rank for rank, count in taken.items() if count > 1]
    if twice:
        paths = [str(trace.path) for trace in found if trace.rank == twice[0]]
        raise InputError(
            f"two traces of rank {twice[0]}: {paths[0]} and {paths[1]}",
            hint="one trace a rank; to compare two runs: broadgauge explain A --against B",
        )
    free = iter(number for number in range(2 * len(found)) if number not in taken)
    if len(found) > 1:
        found = [t if t.rank is not None else replace(t, rank=next(free)) for t in found]
    return tuple(sorted(found, key=lambda trace: trace.rank or 0))


def _common(
    traces: Sequence[RankTrace], wanted: Sequence[int] | None
) -> list[tuple[StepWindow, ...]]:
    """Of each trace the windows of the steps that all have; they touch each other."""
    windows = [windows_of(trace) for trace in traces]
    numbers = set.intersection(*({window.number for window in own} for own in windows))
    if not numbers:
        said = [
            f"{trace.path}: {_range([window.number for window in own])}"
            for trace, own in zip(traces, windows, strict=True)
        ]
        raise InputError(
            f"these traces have no step in common: {'; '.join(said[:4])}",
            hint="trace the same steps on every rank: one schedule(wait=…, active=…) for all",
        )
    if wanted is not None:
        missing = [number for number in wanted if number not in numbers]
        if missing:
            raise InputError(
                f"no step {missing[0]} in these traces",
                hint=f"they have {_range(sorted(numbers))}",
            )
        numbers &= set(wanted)
    chosen = [tuple(window for window in own if window.number in numbers) for own in windows]
    for own in chosen:
        for before, after in pairwise(own):
            if before.end_ns != after.start_ns:
                raise InputError(
                    f"steps {before.number} and {after.number} do not follow each other",
                    hint="name steps that do, or one",
                )
    return chosen


def _range(numbers: Sequence[int]) -> str:
    if not numbers:
        return "no step"
    return f"step {numbers[0]}" if len(numbers) == 1 else f"steps {numbers[0]} to {numbers[-1]}"


def _explained(
    ranks: Sequence[RankTrace],
    windows: Sequence[tuple[StepWindow, ...]],
    activities: Sequence[TracedActivity],
    parts: Sequence[npt.NDArray[np.int8]],
) -> tuple[RankExplanation, ...]:
    """Each rank by its own trace; waiting is told from transfer where there are several."""
    is_compared = len(ranks) > 1
    slowdowns = compute_slowdowns(ranks, activities)
    found = []
    for place, (trace, activity, part) in enumerate(zip(ranks, activities, parts, strict=True)):
        steps = rank_steps(trace, activity, part, windows[place], is_compared=is_compared)
        explained = RankExplanation(
            rank=trace.rank,
            host=trace.host,
            source="in memory" if trace.path is None else str(trace.path),
            steps=steps,
            parts=_together([step.parts for step in steps], is_compared=is_compared),
            compute_slowdown_ns=slowdowns[place],
            has_gpu=trace.has_gpu,
            tracks=tracks_of(activity, part, is_compared=is_compared),
        )
        found.append(explained)
    return tuple(found)


def _together(parts: Sequence[PartTimes], *, is_compared: bool) -> PartTimes:
    sums = {part: sum(each.of(part) or 0 for each in parts) for part in StepPart}
    return part_times(sums, is_compared=is_compared)


def _is_all(traces: Sequence[RankTrace]) -> bool:
    """Are the traces of all ranks there that these ranks know of?"""
    there = {trace.rank for trace in traces}
    known = {rank for trace in traces for call in trace.collectives for rank in call.ranks or ()}
    sizes = [trace.world_size for trace in traces if trace.world_size is not None]
    return known <= there and len(traces) >= max(sizes, default=1)


def _notes(traces: Sequence[RankTrace], matching: Matching) -> Iterable[str]:
    """What a reader must know beside the figures."""
    has_collectives = any(trace.collectives for trace in traces)
    if len(traces) == 1 and has_collectives and (traces[0].world_size or 2) > 1:
        yield (
            "One rank's trace: transfer and waiting for a late rank can't be told apart, and "
            "exposed communication is an upper bound. With the traces of all ranks they can."
        )
    elif not _is_all(traces) and has_collectives:
        yield (
            f"Traces of {len(traces)} ranks, not of all: where the late rank is not among them, "
            "waiting for it counts as exposed communication."
        )
    if not all(trace.steps for trace in traces):
        yield (
            "The profiler was not told of steps (`prof.step()`), or its steps overlap: all of the "
            "trace is taken for one step."
        )
    if matching.num_unmatched:
        yield (
            f"{matching.num_unmatched} collectives do not say of which group they are, and differ "
            "between ranks: their transfer and waiting can't be told apart."
        )
    if not traces[0].has_gpu:
        yield (
            "No GPU was traced: the CPU's operators are the compute, and what Python does beside a "
            "collective can't be told from waiting for it: exposed communication is an upper bound."
        )
