"""When did each step begin and end, where the GPU runs behind the CPU?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from broadgauge.traces.trace import RankTrace, Spans, Times


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWindow:
    """A step's time on one rank. Windows of a trace touch each other."""

    number: int
    start_ns: int
    end_ns: int
    bound_by: Literal["gpu", "cpu"]


def windows_of(trace: RankTrace) -> tuple[StepWindow, ...]:
    """Each step from the end of the one before to its own, the later of the CPU's and the GPU's.

    The GPU's work belongs to the step in which the CPU launched it: a CPU that runs ahead has long
    left the step when its last kernel ends, and the GPU's own `ProfilerStep#` lasts microseconds.
    The first step begins where its CPU does, or where the work launched before it ends.
    """
    if not trace.steps:
        return _whole(trace)
    owner = step_of(trace, trace.gpu.launch_ns, trace.gpu.spans.start_ns)
    ends = trace.gpu.spans.end_ns
    last = np.full(len(trace.steps) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, owner, ends)  # the last place, -1, is of work before the first step
    begin = max(trace.steps[0].start_ns, int(last[-1]))
    found = []
    for place, step in enumerate(trace.steps):
        gpu_end = int(last[place])
        end = max(begin, step.end_ns, gpu_end)
        found.append(
            StepWindow(
                number=step.number,
                start_ns=begin,
                end_ns=end,
                bound_by="gpu" if gpu_end > step.end_ns else "cpu",
            )
        )
        begin = end
    return tuple(window for window in found if window.end_ns > window.start_ns)


def step_of(trace: RankTrace, launch_ns: Times, start_ns: Times) -> npt.NDArray[np.int64]:
    """Of each piece of work the place of its step in `trace.steps`; −1: before the first.

    What is launched between two steps belongs to the first of them. Where no launch is known, work
    that began before the first that is known was launched before the trace; else its start tells.
    """
    known = launch_ns >= 0
    first_known = int(start_ns[known].min()) if known.any() else None
    when = np.where(known, launch_ns, start_ns)
    if first_known is not None:
        when[~known & (start_ns < first_known)] = np.iinfo(np.int64).min
    begins = np.array([step.start_ns for step in trace.steps])
    return np.searchsorted(begins, when, side="right") - 1


def _whole(trace: RankTrace) -> tuple[StepWindow, ...]:
    """All of the trace, where the profiler was told of no steps."""
    spans: list[Spans] = [trace.gpu.spans, trace.calls, trace.ranges]
    launches = trace.gpu.launch_ns[trace.gpu.launch_ns >= 0]
    begins = [each.start_ns[0] for each in spans if len(each)]
    begin = int(min([*begins, launches.min()] if len(launches) else begins))
    cpu_end = max((int(each.end_ns.max()) for each in spans[1:] if len(each)), default=begin)
    gpu_end = max((int(each.end_ns.max()) for each in spans[:1] if len(each)), default=begin)
    end = max(begin + 1, cpu_end, gpu_end)
    bound: Literal["gpu", "cpu"] = "gpu" if gpu_end > cpu_end else "cpu"
    return (StepWindow(number=0, start_ns=begin, end_ns=end, bound_by=bound),)
