"""How many bytes does a step of the reference trainer send out of a node?

What a step gives to each collective (engine/expected_time.py), as the library sends it
(catalog/traffic.py); headers come on top. Source: docs/architecture.md, "A training's step".
"""

from broadgauge.catalog.traffic import grouped_node_bytes
from broadgauge.engine.kinds.training import step_collectives
from broadgauge.predict.system.paths import sent_bytes
from broadgauge.specs.case import Backend
from broadgauge.specs.workloads.workload import TrainWorkload


def step_bytes(workload: TrainWorkload, backend: Backend, nodes: int, ranks_per_node: int) -> float:
    """Payload a step, busier direction; 0 on one node."""
    if nodes < 2:
        return 0.0
    return sum(
        sent_bytes(backend, each.op, nodes, ranks_per_node, each.size_bytes)
        if each.group is None
        else grouped_node_bytes(
            each.op,
            each.group,
            nodes * ranks_per_node,
            each.size_bytes,
            ranks_per_node=ranks_per_node,
        )
        for each in step_collectives(workload, nodes, ranks_per_node)
    )
