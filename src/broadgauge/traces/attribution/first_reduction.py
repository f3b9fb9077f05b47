"""Which collective does the backward pass send first, and under which name?

It is where a step's communication begins to be hidden or not: the moment from which gradients are
on their way. FSDP's is a reduce-scatter, DDP's an all-reduce.
"""

from collections.abc import Sequence

import numpy as np

from broadgauge.traces.attribution.matching import Matching
from broadgauge.traces.attribution.windows import StepWindow
from broadgauge.traces.explanation import FirstReduction
from broadgauge.traces.trace import CollectiveCall, CollectiveKind, RankTrace

_KINDS = (CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)


def first_reduction(
    trace: RankTrace, windows: Sequence[StepWindow], matching: Matching, place: int
) -> FirstReduction | None:
    """Of one rank the first reduce-scatter of each step, else the first all-reduce; their means.

    Named by the innermost range that it was launched under, where there is one. `place` is that of
    the trace in the matching. None where no step has any.
    """
    window_of = {window.number: window for window in windows}
    first: dict[CollectiveKind, dict[int, int]] = {kind: {} for kind in _KINDS}
    for index, call in enumerate(trace.collectives):
        number = int(matching.step_of[place][index])
        if call.kind in first and number in window_of:
            first[call.kind].setdefault(number, index)
    for kind in _KINDS:
        there = [(window_of[number], index) for number, index in first[kind].items()]
        if there:
            return _mean(trace, there, matching.transfer_start_ns[place])
    return None


def _mean(
    trace: RankTrace, there: Sequence[tuple[StepWindow, int]], transfer_start_ns: np.ndarray
) -> FirstReduction:
    calls = [trace.collectives[index] for _, index in there]
    starts = [
        call.start_ns - window.start_ns for (window, _), call in zip(there, calls, strict=True)
    ]
    moving = [trace.collectives[index].end_ns - int(transfer_start_ns[index]) for _, index in there]
    return FirstReduction(
        kind=calls[0].kind,
        name=_name(trace, calls[0]),
        message_bytes=calls[0].message_bytes,
        after_begin_s=float(np.mean(starts)) / 1e9,
        time_s=float(np.mean([call.end_ns - call.start_ns for call in calls])) / 1e9,
        transfer_s=float(np.mean(moving)) / 1e9,
    )


def _name(trace: RankTrace, call: CollectiveCall) -> str:
    """The range that began last of those that the launch lies in; else the kernel's own name."""
    ranges = trace.ranges
    when = call.launch_ns if call.launch_ns >= 0 else call.start_ns
    is_around = (ranges.start_ns <= when) & (ranges.end_ns > when)
    names = [trace.names[index] for index in ranges.name[is_around]]
    own = [name for name in names if not name.startswith(("gloo:", "nccl:"))]
    return own[-1] if own else call.name
