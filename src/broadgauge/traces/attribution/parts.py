"""To which part does each moment of a step go? The first that holds, in one fixed order."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from broadgauge.traces.attribution.activity import TracedActivity
from broadgauge.traces.attribution.moments import Mask
from broadgauge.traces.attribution.windows import StepWindow
from broadgauge.traces.explanation import PartTimes, RankStep, StepPart, StepTimeline
from broadgauge.traces.trace import RankTrace

_PLACE = {part: place for place, part in enumerate(StepPart)}
_CALM = (StepPart.DATA_WAIT, StepPart.CHECKPOINT)
_IS_IDLE = np.array([part in (*_CALM, StepPart.HOST_IDLE) for part in StepPart])


def parts_of(activity: TracedActivity, *, has_gpu: bool) -> npt.NDArray[np.int8]:
    """Each piece's part, a position in `tuple(StepPart)`.

    On a GPU: what computes, then FSDP's copies, then communication that moves, then communication
    that waits; with none of these the CPU's range tells. Without a GPU the thread that loads or
    saves is the one that would compute, so its range comes first.
    """
    calm = [activity.waits == _PLACE[part] for part in _CALM]
    is_calm = calm[0] | calm[1]
    busy: list[tuple[Mask, StepPart]] = [
        (activity.compute, StepPart.COMPUTE),
        (activity.fsdp_copies, StepPart.FSDP_COPIES),
    ]
    sent = [
        (activity.moving, StepPart.EXPOSED_COMMUNICATION),
        (activity.communication, StepPart.STRAGGLER_WAIT),
    ]
    waits = list(zip(calm, _CALM, strict=True))
    if has_gpu:
        choices = [*busy, *sent, (activity.queued, StepPart.OTHER), *waits]
    else:
        choices = [*waits, *busy, *sent]
    choices.append((activity.host_copies & ~is_calm, StepPart.OTHER))
    return np.select(
        [mask for mask, _ in choices],
        [np.int8(_PLACE[part]) for _, part in choices],
        default=np.int8(_PLACE[StepPart.HOST_IDLE]),
    ).astype(np.int8)


def rank_steps(
    trace: RankTrace,
    activity: TracedActivity,
    part: npt.NDArray[np.int8],
    windows: tuple[StepWindow, ...],
    *,
    is_compared: bool,
) -> tuple[RankStep, ...]:
    """Each step of one rank. `is_compared`: with other ranks, so waiting is told from transfer.

    `part` is of each moment what it goes to (`parts_of`).
    """
    edges = activity.moments.edges_ns
    steps = []
    for window in windows:
        first, last = np.searchsorted(edges, [window.start_ns, window.end_ns])
        pieces = slice(int(first), int(last))
        steps.append(_step(trace, activity, window, part, pieces, is_compared=is_compared))
    return tuple(steps)


def _step(
    trace: RankTrace,
    activity: TracedActivity,
    window: StepWindow,
    part: npt.NDArray[np.int8],
    pieces: slice,
    *,
    is_compared: bool,
) -> RankStep:
    edges = activity.moments.edges_ns[pieces.start : pieces.stop + 1]
    length = np.diff(edges)
    own = part[pieces]
    times = np.bincount(own, weights=length, minlength=len(_PLACE)).astype(np.int64)
    works = (activity.compute | activity.fsdp_copies)[pieces]
    waits = activity.waits[pieces]
    return RankStep(
        number=window.number,
        start_ns=window.start_ns,
        end_ns=window.end_ns,
        bound_by=window.bound_by,
        parts=part_times(dict(zip(StepPart, times.tolist(), strict=True)), is_compared=is_compared),
        timeline=_timeline(trace, edges, own, activity.range_name[pieces]),
        overlapped_communication_ns=_total(length, activity.communication[pieces] & works),
        gpu_busy_ns=_total(length, activity.gpu_busy[pieces]),
        hidden_ns={
            str(kind): _total(length, (waits == _PLACE[kind]) & (own != _PLACE[kind]))
            for kind in _CALM
        },
        idle_names_ns=_idle_names(trace, length, own, activity.range_name[pieces]),
    )


def part_times(times: Mapping[StepPart, int], *, is_compared: bool) -> PartTimes:
    """Where ranks were not compared, waiting counts as exposed communication: an upper bound."""
    waiting = times[StepPart.STRAGGLER_WAIT]
    exposed = times[StepPart.EXPOSED_COMMUNICATION]
    return PartTimes(
        compute_ns=times[StepPart.COMPUTE],
        fsdp_copies_ns=times[StepPart.FSDP_COPIES],
        exposed_communication_ns=exposed if is_compared else exposed + waiting,
        straggler_wait_ns=waiting if is_compared else None,
        data_wait_ns=times[StepPart.DATA_WAIT],
        checkpoint_ns=times[StepPart.CHECKPOINT],
        host_idle_ns=times[StepPart.HOST_IDLE],
        other_ns=times[StepPart.OTHER],
    )


def _total(length: npt.NDArray[np.int64], mask: Mask) -> int:
    return int(length[mask].sum())


def _idle_names(
    trace: RankTrace,
    length: npt.NDArray[np.int64],
    part: npt.NDArray[np.int8],
    name: npt.NDArray[np.int64],
) -> dict[str, int]:
    """Time in which nothing ran, by the name of the range that the CPU was in."""
    idle = _IS_IDLE[part] & (name >= 0)
    found: dict[str, int] = defaultdict(int)
    names, place = np.unique(name[idle], return_inverse=True)
    for index, time_ns in zip(names, np.bincount(place, weights=length[idle]), strict=False):
        found[trace.names[index]] += int(time_ns)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _timeline(
    trace: RankTrace,
    edges: npt.NDArray[np.int64],
    part: npt.NDArray[np.int8],
    name: npt.NDArray[np.int64],
) -> StepTimeline:
    """Neighbours of one part and name are one piece; only idle pieces bear a name."""
    shown = np.where(_IS_IDLE[part], name, -1)
    is_first = np.ones(len(part), dtype=bool)
    is_first[1:] = (np.diff(part) != 0) | (np.diff(shown) != 0)
    used, place = np.unique(shown[is_first], return_inverse=True)
    names = tuple(trace.names[index] for index in used if index >= 0)
    shift = 1 if len(used) and used[0] < 0 else 0
    return StepTimeline(
        edges_ns=np.concatenate([edges[:-1][is_first], edges[-1:]]),
        part=part[is_first],
        name=(place - shift).astype(np.int32),
        names=names,
    )
