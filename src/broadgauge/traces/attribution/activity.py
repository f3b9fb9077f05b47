"""What did a rank do at each moment: compute, copy, communicate, wait; and what was its CPU in?"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.traces.attribution.moments import Mask, Moments, cut, nesting
from broadgauge.traces.attribution.naming import (
    are_cpu_work,
    are_fsdp_calls,
    are_fsdp_kernels,
    are_host_copies,
    part_of_range,
)
from broadgauge.traces.attribution.windows import StepWindow
from broadgauge.traces.explanation import StepPart
from broadgauge.traces.trace import GpuKind, RankTrace, Spans, Times

MOST_LAUNCHES_RATIO = 0.25
"""A range in which more of all kernels are launched than that loads or saves nothing by itself,
whatever its name: `run_training_batch`. Our own: loading launches copies and casts."""
QUEUED_NS = 10_000
"""A kernel that was launched so long before the GPU fell idle was not waited for. A launch takes
5 µs, and as long again until its kernel begins: `launch_us` of catalog/constants.yaml."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TracedActivity:
    """Masks over one rank's time; several may be true at once."""

    moments: Moments
    compute: Mask
    fsdp_copies: Mask
    host_copies: Mask
    communication: Mask
    moving: Mask
    """Communication that does not wait for a late rank."""
    queued: Mask
    """Nothing runs, although what runs next had been launched in time."""
    gpu_busy: Mask
    computing: Mask
    """`bool[GPU work]`: which of it is compute, and no communication or copy of FSDP's."""
    waits: npt.NDArray[np.int8]
    """What the CPU is in: position in `tuple(StepPart)` of data_wait or checkpoint; −1: neither."""
    range_name: npt.NDArray[np.int64]
    """The innermost range that the CPU is in: position in the trace's names; −1: none."""


def activity_of(
    trace: RankTrace, windows: tuple[StepWindow, ...], transfer_start_ns: Times
) -> TracedActivity:
    """`transfer_start_ns`: when each collective of the trace stopped waiting."""
    ranges = _main_ranges(trace)
    labels = _labels(trace, ranges)
    starts = np.array([call.start_ns for call in trace.collectives], dtype=np.int64)
    ends = np.array([call.end_ns for call in trace.collectives], dtype=np.int64)
    nested = nesting(ranges, labels)
    work = _GpuSide(trace) if trace.has_gpu else _CpuSide(trace)
    moments = cut(
        windows[0].start_ns,
        windows[-1].end_ns,
        [
            np.array([window.end_ns for window in windows]),
            nested.since_ns,
            starts,
            ends,
            transfer_start_ns,
            *work.times(),
        ],
    )
    compute, fsdp_copies, host_copies = work.masks(moments)
    communication = moments.covering(starts, ends) > 0
    idle = ~(compute | fsdp_copies | host_copies | communication)
    innermost, label = nested.at(moments)
    return TracedActivity(
        moments=moments,
        compute=compute,
        fsdp_copies=fsdp_copies,
        host_copies=host_copies,
        communication=communication,
        moving=moments.covering(transfer_start_ns, ends) > 0,
        queued=_queued(trace, moments, idle),
        gpu_busy=moments.any_of(trace.gpu.spans),
        computing=work.is_compute,
        waits=label.astype(np.int8),
        range_name=_names_of(ranges, innermost),
    )


def _names_of(ranges: Spans, innermost: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if not len(ranges):
        return innermost
    return np.where(innermost < 0, -1, ranges.name[np.maximum(innermost, 0)])


def _main_ranges(trace: RankTrace) -> Spans:
    """Those of the thread that takes the steps; without steps, of the one with most operators."""
    if trace.steps:
        return trace.ranges.only(trace.ranges.thread == trace.steps[0].thread)
    threads = trace.calls.thread if len(trace.calls) else trace.ranges.thread
    if not len(threads):
        return trace.ranges
    found, counts = np.unique(threads, return_counts=True)
    return trace.ranges.only(trace.ranges.thread == found[np.argmax(counts)])


def _labels(trace: RankTrace, ranges: Spans) -> npt.NDArray[np.int64]:
    """What each range says that is waited for, as a position in `tuple(StepPart)`; −1: nothing."""
    parts = tuple(StepPart)
    told = [part_of_range(name) for name in trace.names]
    by_name = np.array([-1 if part is None else parts.index(part) for part in told] or [-1])
    labels = by_name[ranges.name] if len(ranges) else np.empty(0, dtype=np.int64)
    begun = np.sort(trace.gpu.launch_ns if trace.has_gpu else trace.calls.start_ns)
    begun = begun[begun >= 0]
    inside = np.searchsorted(begun, ranges.end_ns) - np.searchsorted(begun, ranges.start_ns)
    is_step_like = inside > MOST_LAUNCHES_RATIO * max(1, len(begun)) / max(1, len(trace.steps))
    is_loader = np.array([n.startswith("enumerate(DataLoader)#") for n in trace.names] or [False])
    never = is_step_like & ~(is_loader[ranges.name] if len(ranges) else is_step_like)
    return np.where(never, -1, labels).astype(np.int64)


def _queued(trace: RankTrace, moments: Moments, idle: Mask) -> Mask:
    """Runs of idle pieces whose end is the begin of work that was launched long before them."""
    queued = np.zeros(len(moments), dtype=bool)
    spans = trace.gpu.spans
    if not len(spans):
        return queued
    changes = np.flatnonzero(np.diff(np.concatenate([[False], idle, [False]]).astype(np.int8)))
    first, last = changes[::2], changes[1::2]
    begin, end = moments.edges_ns[first], moments.edges_ns[last]
    following = np.minimum(np.searchsorted(spans.start_ns, end), len(spans) - 1)
    launch = trace.gpu.launch_ns[following]
    is_late = (spans.start_ns[following] == end) & (launch >= 0) & (launch < begin - QUEUED_NS)
    change = np.zeros(len(moments) + 1, dtype=np.int64)
    np.add.at(change, first[is_late], 1)
    np.add.at(change, last[is_late], -1)
    return np.cumsum(change)[:-1] > 0


class _GpuSide:
    """Kernels are the work."""

    def __init__(self, trace: RankTrace) -> None:
        self.trace = trace
        gpu = trace.gpu
        names = gpu.spans.name
        is_kernel = gpu.kind == GpuKind.KERNEL
        self.is_copy = is_kernel & (are_fsdp_kernels(trace.names)[names] | _by_fsdp(trace))
        self.is_moved = (gpu.kind == GpuKind.COPY) & are_host_copies(trace.names)[names]
        self.is_compute = ~(self.is_copy | self.is_moved | trace.gpu.is_collective)

    def times(self) -> list[Times]:
        return [self.trace.gpu.spans.start_ns, self.trace.gpu.spans.end_ns]

    def masks(self, moments: Moments) -> tuple[Mask, Mask, Mask]:
        spans = self.trace.gpu.spans
        return (
            moments.any_of(spans, self.is_compute),
            moments.any_of(spans, self.is_copy),
            moments.any_of(spans, self.is_moved),
        )


class _CpuSide:
    """Without a GPU the operators are the work: on each thread the innermost one."""

    def __init__(self, trace: RankTrace) -> None:
        is_work, is_copy = are_cpu_work(trace.names), are_fsdp_calls(trace.names)
        label = np.where(is_copy, 1, -1)
        self.threads = []
        for thread in np.unique(trace.calls.thread):
            calls = trace.calls.only(trace.calls.thread == thread)
            self.threads.append((calls, nesting(calls, label[calls.name])))
        self.is_work = is_work
        self.is_compute = np.empty(0, dtype=bool)

    def times(self) -> list[Times]:
        return [nested.since_ns for _, nested in self.threads]

    def masks(self, moments: Moments) -> tuple[Mask, Mask, Mask]:
        compute = np.zeros(len(moments), dtype=bool)
        copies = compute.copy()
        for calls, nested in self.threads:
            innermost, label = nested.at(moments)
            is_work = (innermost >= 0) & self.is_work[calls.name[np.maximum(innermost, 0)]]
            copies |= label == 1
            compute |= is_work & (label != 1)
        return compute, copies, np.zeros(len(moments), dtype=bool)


def _by_fsdp(trace: RankTrace) -> Mask:
    """Which kernels were launched within an operator or range of FSDP2's copies?"""
    gpu = trace.gpu
    found = np.zeros(len(gpu), dtype=bool)
    is_named = are_fsdp_calls(trace.names)
    for spans in (trace.calls, trace.ranges):
        copies = spans.only(is_named[spans.name]) if len(spans) else spans
        for thread in np.unique(copies.thread):
            own = copies.only(copies.thread == thread)
            place = np.searchsorted(own.start_ns, gpu.launch_ns, side="right") - 1
            inside = (place >= 0) & (gpu.launch_ns < np.maximum.accumulate(own.end_ns)[place])
            found |= inside & (gpu.launch_thread == thread)
    return found & ~trace.gpu.is_collective
