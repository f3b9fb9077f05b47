"""What did each microsecond of a played job go to? Painted one by one: slow, plain, right."""

from dataclasses import dataclass

import numpy as np
from tests.traces.synthetic import Job, Played

QUEUED_US = 10


@dataclass(frozen=True)
class Truth:
    """Of one rank's step, in microseconds."""

    start: int
    end: int
    parts: dict[str, int]
    overlapped: int
    hidden: dict[str, int]


def truth_of(job: Job, rank: int, number: int, *, is_alone: bool = False) -> Truth:
    """`is_alone`: as one rank's trace tells it, waiting being no other than transfer."""
    played = job.ranks[rank]
    start, end = _window(played, number, job.first_traced)
    length = end - start
    busy = {
        kind: np.zeros(length, bool)
        for kind in ("compute", "fsdp_copies", "communication", "moving", "copy")
    }
    for done in played.done:
        begin, finish = np.clip([done.start - start, done.end - start], 0, length)
        busy[done.kind][begin:finish] = True
        if done.kind == "communication":
            moving = done.start if is_alone else done.transfer
            busy["moving"][max(0, moving - start) : finish] = True
    works = busy["compute"] | busy["fsdp_copies"]
    idle = ~(works | busy["communication"] | busy["copy"])
    calm = {part: np.zeros(length, bool) for part in ("data_wait", "checkpoint")}
    for part, begin, finish in played.calm:
        calm[part][max(0, begin - start) : max(0, finish - start)] = True
    queued = _queued(played, start, idle)
    is_calm = calm["data_wait"] | calm["checkpoint"]
    moved = busy["copy"] & ~works & ~busy["communication"]
    calmly = (idle & ~queued) | moved
    parts = {
        "compute": busy["compute"],
        "fsdp_copies": busy["fsdp_copies"] & ~busy["compute"],
        "exposed_communication": busy["moving"] & ~works,
        "straggler_wait": busy["communication"] & ~busy["moving"] & ~works,
        "data_wait": (calmly & calm["data_wait"]),
        "checkpoint": (calmly & calm["checkpoint"]),
        "host_idle": idle & ~is_calm & ~queued,
        "other": (moved & ~is_calm) | queued,
    }
    return Truth(
        start=start,
        end=end,
        parts={part: int(mask.sum()) for part, mask in parts.items()},
        overlapped=int((busy["communication"] & works).sum()),
        hidden={part: int((mask & ~calmly).sum()) for part, mask in calm.items()},
    )


def _queued(played: Played, start: int, idle: np.ndarray) -> np.ndarray:
    """Idle although what runs next had been launched QUEUED_US before the GPU fell idle."""
    queued = np.zeros(len(idle), bool)
    following = {done.start - start: done.launch - start for done in played.done}
    changes = np.flatnonzero(np.diff(np.concatenate([[False], idle, [False]]).astype(int)))
    for begin, end in changes.reshape(-1, 2):
        if following.get(int(end), begin) < begin - QUEUED_US:
            queued[begin:end] = True
    return queued


def _window(played: Played, number: int, first_traced: int) -> tuple[int, int]:
    """From the end of the last step, of its CPU or its GPU, to the end of this one."""
    ends, begin = {}, 0
    for index, cpu_begin, cpu_end, gpu_end in played.steps:
        if index == first_traced:
            before = [e for n, _, _, e in played.steps if n < first_traced]
            begin = max([cpu_begin, *before])
        if index < first_traced:
            continue
        ends[index] = (begin, max(begin, cpu_end, gpu_end))
        begin = ends[index][1]
    return ends[number]
