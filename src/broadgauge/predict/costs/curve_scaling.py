"""What does a measured curve say of other numbers of nodes, of other collectives and groups?

A ring's time follows the bytes that leave a node, so a curve is read at the size that sends as many
bytes. Source: collectives' factors as in catalog/busbw.py; NVIDIA/nccl, src/graph/tuning.cc (the
latency's steps grow with the nodes in the same way).
"""

import numpy as np

from broadgauge.catalog.busbw import bus_factor
from broadgauge.predict.case import CollectiveCurve, Fabric, Op
from broadgauge.predict.costs.curves import time_at
from broadgauge.predict.costs.pieces import CollectiveGroup
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns

OPS: tuple[Op, ...] = ("all_reduce", "all_gather", "reduce_scatter")
"""Rings, which may stand in for each other."""


def curve_s(op: Op, message_bytes: Times, group: CollectiveGroup, columns: Columns) -> Times:
    """Seconds of one collective in each case; NaN where its fabric has no curve to read."""
    seconds = np.full(len(columns), np.nan)
    if not columns.fabric.has_curves:
        return seconds
    for index, case in enumerate(columns.cases):
        if not case.fabric.curves or message_bytes[index] <= 0 or group.ranks[index] < 2:
            continue
        nodes, on_node = int(group.nodes[index]), int(group.ranks_per_node[index])
        curve = nearest_curve(case.fabric, op, nodes, on_node)
        if curve is not None:
            ranks, crowd = float(group.ranks[index]), float(group.groups_per_node[index])
            ratio = bus_factor(op, ranks) / bus_factor(curve.op, curve.nodes * curve.ranks_per_node)
            equal_bytes = float(message_bytes[index]) * ratio * crowd
            seconds[index] = time_at(curve, equal_bytes)
    return seconds


def nearest_curve(
    fabric: Fabric, op: Op, nodes: int, ranks_per_node: int
) -> CollectiveCurve | None:
    """The curve of this collective, else of another ring; of as many nodes, else of the nearest.

    What was measured inside a node says nothing of what leaves it, nor the other way round.
    """
    found = [
        curve
        for curve in fabric.curves
        if (curve.nodes > 1) == (nodes > 1)
        and (curve.op == op or (op in OPS and curve.op in OPS))
        and (nodes > 1 or curve.ranks_per_node == ranks_per_node)
    ]
    found.sort(
        key=lambda curve: (
            curve.op != op,
            curve.nodes != nodes,
            abs(curve.ranks_per_node - ranks_per_node),
            abs(curve.nodes - nodes),
        )
    )
    return found[0] if found else None
