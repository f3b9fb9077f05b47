"""Which rows of a table calibrate, and which are left to be scored? Chosen without any step time.

A system is one source's GPU, framework and arithmetic; `system-network` takes rows of each of its
networks. Rows are chosen by what is asked, never by what was measured or by an error: each time the
one that brings all rows of the group nearest to a chosen one (greedy k-median; Cornuejols, Fisher,
Nemhauser 1977), so that the first is typical and the next stand for what it does not.
"""

import math
from collections.abc import Sequence
from typing import Literal

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.table import Row

Calibrate = Literal["none", "system", "system-network"]
SystemKey = tuple[str, ...]
DEFAULT_POINTS = 3


def system_of(row: Row) -> SystemKey:
    """What shares constants: one source's GPU with one framework and arithmetic."""
    case = row.case
    return (row.source, case.gpu, case.framework, case.precision)


def network_of(row: Row) -> SystemKey:
    """What the nodes of a row are joined by."""
    fabric = row.case.fabric
    return (fabric.transport, str(fabric.node_gbps), str(fabric.measured_node_gbyte_per_s))


def calibration_rows(
    rows: Sequence[Row], calibrate: Calibrate, num_points: int
) -> dict[SystemKey, list[Row]]:
    """For each system the rows that calibrate it: never more than half of any group."""
    if calibrate == "none":
        return {}
    groups: dict[tuple[SystemKey, SystemKey], list[Row]] = {}
    for row in rows:
        network = network_of(row) if calibrate == "system-network" else ()
        groups.setdefault((system_of(row), network), []).append(row)
    chosen: dict[SystemKey, list[Row]] = {}
    for (system, _), group in groups.items():
        found = spread_out(group, min(num_points, len(group) // 2))
        chosen.setdefault(system, []).extend(found)
    return chosen


def spread_out(rows: Sequence[Row], num_points: int) -> list[Row]:
    """So many rows that stand for all: the sum of distances to the nearest of them is small."""
    places = _scaled([_place(row.case) for row in rows])
    nearest = [math.inf] * len(rows)
    chosen: list[int] = []
    for _ in range(num_points):
        rest = [i for i in range(len(rows)) if i not in chosen]
        best = min(rest, key=lambda i: (_sum_with(i, places, nearest), rows[i].line))
        nearest = _nearest_with(best, places, nearest)
        chosen.append(best)
    return [rows[i] for i in chosen]


def _nearest_with(
    index: int, places: Sequence[Sequence[float]], nearest: Sequence[float]
) -> list[float]:
    """Distances to the nearest chosen one if this one is chosen too."""
    return [
        min(known, math.dist(place, places[index]))
        for known, place in zip(nearest, places, strict=True)
    ]


def _sum_with(index: int, places: Sequence[Sequence[float]], nearest: Sequence[float]) -> float:
    # Rounded: sums of one set in another order must not decide.
    return round(math.fsum(_nearest_with(index, places, nearest)), 9)


def _place(case: TrainingCase) -> list[float]:
    """Logarithms of what decides the regime."""
    model = case.model
    return [
        math.log(case.micro_batch * case.seq_len),  # compute against launches and bytes
        math.log(model.active_params / (model.layers * case.tensor_parallel)),  # sizes of products
        math.log(case.micro_batches),  # what happens once a step against once a pass
        math.log(case.nodes),
        math.log(case.seq_len / model.hidden),  # attention against the products
    ]


def _scaled(places: Sequence[Sequence[float]]) -> list[list[float]]:
    """Each axis from 0 to 1; one that doesn't vary says nothing."""
    axes = []
    for axis in zip(*places, strict=True):
        low, high = min(axis), max(axis)
        axes.append([(each - low) / (high - low) if high > low else 0.0 for each in axis])
    return [list(place) for place in zip(*axes, strict=True)]
