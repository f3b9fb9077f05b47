"""How much of a collective was transfer, and how much waiting for the last rank?

NCCL's kernel spins from when its rank has come until all have sent. So of all ranks' instances of
one collective the shortest is that of the rank that came last: its time is the transfer, and what
the others took longer they waited. No clocks are compared. It holds for collectives that no rank
can leave before all have come; of a broadcast it does not.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from broadgauge.specs.errors import InputError
from broadgauge.traces.attribution.windows import step_of
from broadgauge.traces.trace import CollectiveCall, CollectiveKind, RankTrace, Times

SAME_BYTES = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.BROADCAST,
)
"""All ranks of these name the same size; of others each may have its own."""
Group = tuple[str, tuple[int, ...] | None]
Place = tuple[int, int]
"""Trace and call: positions in `traces` and in its `collectives`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedCollective:
    """One collective on all ranks whose traces are there."""

    step: int
    calls: tuple[Place, ...]
    last: int
    """Position in `traces` of the rank that came last."""
    transfer_ns: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matching:
    """All ranks' collectives side by side."""

    transfer_start_ns: tuple[Times, ...]
    """A trace an entry: when each call's waiting ended; its start where nothing was compared."""
    matched: tuple[MatchedCollective, ...]
    step_of: tuple[Times, ...]
    """A trace an entry: the number of each call's step, −1 before the first."""
    num_unmatched: int
    """Calls of steps that all have, in groups whose members the traces do not tell."""


def match(traces: Sequence[RankTrace], step_numbers: Sequence[int]) -> Matching:
    """Compares collectives in the order in which each group has launched them, step by step.

    Raises InputError where ranks do not agree in what came when.
    """
    starts = [np.array([c.start_ns for c in t.collectives], dtype=np.int64) for t in traces]
    steps = [_steps_of_calls(trace) for trace in traces]
    matched: list[MatchedCollective] = []
    num_unmatched = 0
    for (step, group), members in _by_group(traces, steps, set(step_numbers)).items():
        if len(members) < 2:
            continue
        refused = _mismatch(traces, step, group, members)
        if refused is not None and group == ("", None):
            num_unmatched += sum(map(len, members.values()))
            continue
        if refused is not None:
            raise refused
        for calls in _instances(members):
            one = _compared(traces, step, calls)
            if one is None:
                continue
            matched.append(one)
            for trace, call in one.calls:
                end = traces[trace].collectives[call].end_ns
                starts[trace][call] = end - one.transfer_ns
    return Matching(
        transfer_start_ns=tuple(starts),
        matched=tuple(matched),
        step_of=tuple(steps),
        num_unmatched=num_unmatched,
    )


def _steps_of_calls(trace: RankTrace) -> Times:
    calls = trace.collectives
    if not trace.steps:
        return np.zeros(len(calls), dtype=np.int64)
    launch = np.array([call.launch_ns for call in calls], dtype=np.int64)
    start = np.array([call.start_ns for call in calls], dtype=np.int64)
    numbers = np.array([*(step.number for step in trace.steps), -1])
    return numbers[step_of(trace, launch, start)]


def _by_group(
    traces: Sequence[RankTrace], steps: Sequence[Times], wanted: set[int]
) -> dict[tuple[int, Group], dict[int, list[int]]]:
    """Each step's and group's calls, by trace, in the order of their sequence.

    A rank of the group that has none at all has an empty list.
    """
    found: dict[tuple[int, Group], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, trace in enumerate(traces):
        for index, call in enumerate(trace.collectives):
            step = int(steps[place][index])
            if step in wanted:
                found[step, (call.group, call.ranks)][place].append(index)
    place_of = {trace.rank: place for place, trace in enumerate(traces)}
    for (_, (_, ranks)), members in found.items():
        for rank in ranks or ():
            if rank in place_of:
                members[place_of[rank]]
        for place, indices in members.items():
            calls = traces[place].collectives
            indices.sort(key=lambda index, calls=calls: calls[index].sequence)  # type: ignore[misc]
    return found


def _instances(members: dict[int, list[int]]) -> Iterator[tuple[Place, ...]]:
    for together in zip(*members.values(), strict=True):
        yield tuple(zip(members, together, strict=True))


def _compared(
    traces: Sequence[RankTrace], step: int, calls: tuple[Place, ...]
) -> MatchedCollective | None:
    """None for a collective that one rank can leave while another has not come."""
    if not traces[calls[0][0]].collectives[calls[0][1]].kind.is_symmetric:
        return None
    times = [
        traces[trace].collectives[call].end_ns - traces[trace].collectives[call].start_ns
        for trace, call in calls
    ]
    shortest = int(np.argmin(times))
    return MatchedCollective(
        step=step, calls=calls, last=calls[shortest][0], transfer_ns=times[shortest]
    )


def _mismatch(
    traces: Sequence[RankTrace], step: int, group: Group, members: dict[int, list[int]]
) -> InputError | None:
    """What two ranks do not agree in, and where."""
    (first, own), *others = members.items()
    for other, theirs in others:
        pairs = zip(own, theirs, strict=False)
        for number, (mine, its) in enumerate(pairs):
            one, two = traces[first].collectives[mine], traces[other].collectives[its]
            if one.kind != two.kind or (one.kind in SAME_BYTES and _size(one) != _size(two)):
                place = f"collective {number} of group {_said(group)} in step {step}"
                return _refusal(traces, (first, other), place, (_call(one), _call(two)))
        if len(own) != len(theirs):
            place = f"collectives of group {_said(group)} in step {step}"
            return _refusal(traces, (first, other), place, (str(len(own)), str(len(theirs))))
    return None


def _refusal(
    traces: Sequence[RankTrace], places: tuple[int, int], where: str, seen: tuple[str, str]
) -> InputError:
    ranks = [f"rank {traces[place].rank} ({_path(traces[place])})" for place in places]
    return InputError(
        f"{where}: {seen[0]} on {ranks[0]}, {seen[1]} on {ranks[1]}",
        hint="these traces are not of one job, or not of the same steps: explain one by itself",
    )


def _size(call: CollectiveCall) -> int | None:
    return call.message_bytes


def _call(call: CollectiveCall) -> str:
    size = "" if call.message_bytes is None else f" of {call.message_bytes} bytes"
    return f"{call.kind}{size}"


def _said(group: Group) -> str:
    name, ranks = group
    return f"`{name}`" if ranks is None else f"`{name}` {list(ranks)}"


def _path(trace: RankTrace) -> str:
    return "in memory" if trace.path is None else str(trace.path)
