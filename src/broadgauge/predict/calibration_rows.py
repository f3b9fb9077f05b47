"""Which rows of a table calibrate, and which are left to be scored? Chosen without any step time.

A system is one source's GPU, framework and arithmetic; `system-network` takes rows of each of its
networks. Rows are chosen by what is asked, never by what was measured or by an error: the most
typical one first, then each time the one that is least like those chosen (Gonzalez 1985, farthest
first), so that rows of different regimes come early.
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
    """So many rows: the most typical one, then each the farthest from those before it."""
    if num_points < 1:
        return []
    places = _scaled([_place(row.case) for row in rows])
    centre = [math.fsum(axis) / len(places) for axis in zip(*places, strict=True)]
    order = range(len(rows))
    chosen = [min(order, key=lambda i: (math.dist(places[i], centre), rows[i].line))]
    while len(chosen) < num_points:
        rest = [i for i in order if i not in chosen]
        far = max(
            rest,
            key=lambda i: (min(math.dist(places[i], places[j]) for j in chosen), -rows[i].line),
        )
        chosen.append(far)
    return [rows[i] for i in chosen]


def _place(case: TrainingCase) -> list[float]:
    """Logarithms of what decides the regime."""
    tokens = case.micro_batch * case.seq_len
    work = case.model.active_params / (case.tensor_parallel * case.pipeline_parallel) * tokens
    return [
        math.log(work / case.model.layers),  # of a layer's pass: is it launch- or compute-bound?
        math.log(case.micro_batches),
        math.log(case.nodes),
        math.log(case.model.params / work),  # bytes to send over FLOPs to hide them behind
        math.log(case.seq_len / case.model.hidden),  # attention over matrix products
    ]


def _scaled(places: Sequence[Sequence[float]]) -> list[list[float]]:
    """Each axis from 0 to 1; one that doesn't vary says nothing."""
    axes = []
    for axis in zip(*places, strict=True):
        low, high = min(axis), max(axis)
        axes.append([(each - low) / (high - low) if high > low else 0.0 for each in axis])
    return [list(place) for place in zip(*axes, strict=True)]
