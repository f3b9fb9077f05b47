"""Where on a curve of step times do the compared networks lie, and where do their names stand?

Names stand in rows above the curves, each at what its network carries, so that none covers a curve
or another name; a line leads down from each.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from broadgauge.predict.answering.answers import Answer
from broadgauge.predict.answering.carried_rate import carried_gbyte_per_s
from broadgauge.predict.answering.knee import BandwidthCurve
from broadgauge.predict.answering.settings import on_any_network

PLOT_WIDTH = 250
"""Pixels between the axes of the narrowest drawing; on a wider one names are further apart."""
CHARACTER_WIDTH = 6.6
"""Pixels, of 11-pixel letters; rather too many."""
SAME_RATIO = 1.1
"""Rates of one network over curves that are nearer than this have one name between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMark:
    """A network that was asked for, on the curve of its training."""

    name: str
    rate_gbps: float
    """What it carries out of a node by the prediction, latency included."""
    step_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedName:
    """A name, in a row above the curves."""

    name: str
    """With … in its middle where there is no room for all of it."""
    rate_gbps: float
    row: int
    """0 is the uppermost."""
    is_left: bool
    """It ends at its rate, as there is no room to begin there."""


def marks_of(curve: BandwidthCurve, answers: Sequence[Answer]) -> tuple[NetworkMark, ...]:
    """The networks over which this curve's training was asked for, each once; without those of
    which the prediction has no rate."""
    wanted = on_any_network(curve.case)
    found: dict[str, NetworkMark] = {}
    for prediction in (answer.prediction for answer in answers):
        case = prediction.case
        carried = carried_gbyte_per_s(prediction)
        if on_any_network(case) == wanted and carried is not None:
            mark = NetworkMark(
                name=case.fabric.name, rate_gbps=carried * 8, step_s=prediction.step_time_s.value
            )
            found.setdefault(mark.name, mark)
    return tuple(found.values())


def placed_names(
    marks: Iterable[NetworkMark], lowest_gbps: float, highest_gbps: float
) -> tuple[PlacedName, ...]:
    """In rows, on a logarithmic axis from the lowest to the highest rate; no two touch."""
    placed: list[PlacedName] = []
    taken: list[tuple[int, float, float]] = []
    decades = math.log10(highest_gbps / lowest_gbps)
    for name, rate in sorted(_names(marks), key=lambda each: (each[1], each[0])):
        at = PLOT_WIDTH * math.log10(rate / lowest_gbps) / decades
        width = _width(name)
        is_left = at + width > PLOT_WIDTH and at > PLOT_WIDTH - at
        shown = _within(name, at if is_left else PLOT_WIDTH - at)
        width = _width(shown)
        begin, end = (at - width, at) if is_left else (at, at + width)
        over = [row for row, first, last in taken if first < end and begin < last]
        row = 1 + max(over, default=-1)
        taken.append((row, begin, end))
        placed.append(PlacedName(name=shown, rate_gbps=rate, row=row, is_left=is_left))
    return tuple(placed)


def _width(name: str) -> float:
    """In pixels, with what is left free beside it."""
    return CHARACTER_WIDTH * (len(name) + 1)


def _within(name: str, room: float) -> str:
    """Its beginning and its end, by which names of one family differ, where all of it is wider."""
    if _width(name) <= room:
        return name
    num_kept = max(int(room / CHARACTER_WIDTH) - 2, 2)
    return f"{name[: (num_kept + 1) // 2]}…{name[-(num_kept // 2) :]}"


def _names(marks: Iterable[NetworkMark]) -> Iterator[tuple[str, float]]:
    """Each name at the middle of its rates, once for all that are near each other."""
    rates: dict[str, list[float]] = {}
    for mark in sorted(marks, key=lambda each: each.rate_gbps):
        rates.setdefault(mark.name, []).append(mark.rate_gbps)
    for name, ascending in rates.items():
        group = [ascending[0]]
        for rate in ascending[1:]:
            if rate > SAME_RATIO * group[0]:
                yield name, math.sqrt(group[0] * group[-1])
                group = []
            group.append(rate)
        yield name, math.sqrt(group[0] * group[-1])
