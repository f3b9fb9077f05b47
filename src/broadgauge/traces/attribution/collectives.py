"""What did each kind of collective take: its size, its transfer, its waiting, its busbw?"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from broadgauge.catalog.busbw import bus_factor
from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.traces.attribution.activity import TracedActivity
from broadgauge.traces.attribution.matching import Matching
from broadgauge.traces.explanation import CollectiveTimes
from broadgauge.traces.trace import CollectiveCall, RankTrace

_KNOWN_OPS: Mapping[str, CollectiveOp] = {op: op for op in get_args(CollectiveOp)}
Key = tuple[str, str, int | None, int | None, str | None]


@dataclass
class _Sums:
    """Over all ranks and steps, in nanoseconds."""

    example: CollectiveCall
    calls: int = 0
    time: int = 0
    moving: int = 0
    exposed: int = 0
    transfers: list[int] = field(default_factory=list)
    nodes: set[int | None] = field(default_factory=set)


def collective_times(
    traces: Sequence[RankTrace],
    activities: Sequence[TracedActivity],
    exposed: Sequence[np.ndarray],
    matching: Matching,
    *,
    step_numbers: Sequence[int],
    is_compared: bool,
    ranks_per_node: int | None,
) -> tuple[CollectiveTimes, ...]:
    """One an op, group, size and type, the longest exposed first.

    `exposed` is of each rank `bool[pieces]`: exposed_communication. `ranks_per_node` tells nodes
    where ranks are numbered node by node; else the names of hosts do, where they are known.
    """
    nodes = _nodes(traces, ranks_per_node)
    sums: dict[Key, _Sums] = {}
    wanted = set(step_numbers)
    for place, trace in enumerate(traces):
        shares = _exposed_shares(activities[place], exposed[place], matching, place, trace)
        for index, call in enumerate(trace.collectives):
            if int(matching.step_of[place][index]) not in wanted:
                continue
            one = sums.setdefault(_key(call), _Sums(example=call))
            one.calls += 1
            one.time += call.end_ns - call.start_ns
            one.moving += call.end_ns - int(matching.transfer_start_ns[place][index])
            one.exposed += int(shares[index])
            one.nodes.add(_num_nodes(call, nodes))
    for match in matching.matched:
        place, index = match.calls[0]
        sums[_key(traces[place].collectives[index])].transfers.append(match.transfer_ns)
    users = _users(traces, matching, wanted)
    found = [
        _times(one, len(wanted), users[key], len(traces), is_compared=is_compared)
        for key, one in sums.items()
    ]
    return tuple(sorted(found, key=lambda times: (-times.exposed_s, -times.time_s, times.group)))


def _key(call: CollectiveCall) -> Key:
    return (call.kind, call.group, call.num_ranks, call.message_bytes, call.dtype)


def _users(traces: Sequence[RankTrace], matching: Matching, wanted: set[int]) -> Mapping[Key, int]:
    """How many of the ranks make such calls."""
    users: dict[Key, set[int]] = defaultdict(set)
    for place, trace in enumerate(traces):
        for call, step in zip(trace.collectives, matching.step_of[place], strict=True):
            if int(step) in wanted:
                users[_key(call)].add(place)
    return {key: len(places) for key, places in users.items()}


def _exposed_shares(
    activity: TracedActivity, exposed: np.ndarray, matching: Matching, place: int, trace: RankTrace
) -> np.ndarray:
    """Each call's part of the exposed time; where several move at once, an even share each."""
    starts = matching.transfer_start_ns[place]
    ends = np.array([call.end_ns for call in trace.collectives], dtype=np.int64)
    together = np.maximum(1, activity.moments.covering(starts, ends))
    return activity.moments.within(exposed / together, starts, ends)


def _nodes(
    traces: Sequence[RankTrace], ranks_per_node: int | None
) -> Callable[[int], str | int | None]:
    """Which node is a rank on? None: unknown."""
    if ranks_per_node is not None:
        return lambda rank: rank // ranks_per_node
    hosts = {trace.rank: trace.host for trace in traces}
    return hosts.get


def _num_nodes(call: CollectiveCall, node_of: Callable[[int], str | int | None]) -> int | None:
    """Over how many nodes the group's ranks are; None where one's is unknown."""
    if call.ranks is None:
        return None
    found = {node_of(rank) for rank in call.ranks}
    return None if None in found else len(found)


def _times(
    one: _Sums, num_steps: int, num_users: int, num_traces: int, *, is_compared: bool
) -> CollectiveTimes:
    call = one.example
    transfer_s = (float(np.mean(one.transfers)) if one.transfers else one.moving / one.calls) / 1e9
    (nodes,) = one.nodes if len(one.nodes) == 1 else (None,)
    return CollectiveTimes(
        kind=call.kind,
        group=call.group,
        num_ranks=call.num_ranks,
        num_nodes=nodes,
        message_bytes=call.message_bytes,
        dtype=call.dtype,
        calls_per_step_count=one.calls / num_steps / num_users,
        time_s=one.time / one.calls / 1e9,
        transfer_s=transfer_s,
        waiting_s=(one.time - one.moving) / one.calls / 1e9 if is_compared else None,
        exposed_s=one.exposed / 1e9 / num_steps / num_traces,
        busbw_gbyte_per_s=_busbw(call, transfer_s),
    )


def _busbw(call: CollectiveCall, transfer_s: float) -> float | None:
    """None where size, ranks or factor are unknown. Source: nccl-tests (catalog/busbw.py)."""
    op = _KNOWN_OPS.get(call.kind)
    ranks, size = call.num_ranks, call.message_bytes
    if op is None or ranks is None or ranks < 2 or not size or transfer_s <= 0:
        return None
    return size / transfer_s / 1e9 * bus_factor(op, float(ranks))
