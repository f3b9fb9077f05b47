"""What do the measured paths of a machine carry, as curves over message size?"""

from collections.abc import Sequence

from broadgauge.catalog.traffic import gloo_node_bytes, ring_node_bytes
from broadgauge.predict.case import CollectiveCurve
from broadgauge.predict.costs.curves import rising
from broadgauge.specs.case import Backend
from broadgauge.specs.machines.system import PathTimes
from broadgauge.specs.workloads.collectives import CollectiveOp

Paths = Sequence[PathTimes]


def path_curves(path: PathTimes) -> tuple[CollectiveCurve, ...]:
    """The collectives of one path, as they were measured."""
    curves = []
    for op in dict.fromkeys(each.op for each in path.collectives):
        mine = sorted(
            (each for each in path.collectives if each.op == op), key=lambda each: each.size_bytes
        )
        curves.append(
            CollectiveCurve(
                op=op,
                nodes=path.nodes,
                ranks_per_node=path.ranks_per_node,
                message_bytes=tuple(float(each.size_bytes) for each in mine),
                time_s=rising([each.time.median_s for each in mine]),
            )
        )
    return tuple(curves)


def sent_bytes(
    backend: Backend, op: CollectiveOp, nodes: int, ranks_per_node: int, size_bytes: float
) -> float:
    """Bytes that leave the busiest node: Gloo's as it sends them, NCCL's as a ring."""
    count = gloo_node_bytes if backend == "gloo" else ring_node_bytes
    return count(op, nodes * ranks_per_node, size_bytes, ranks_per_node=ranks_per_node)
