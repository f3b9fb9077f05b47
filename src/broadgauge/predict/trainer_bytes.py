"""How many bytes does a step of the reference trainer send out of a node?

Exactly its messages (specs/model_messages.py), as the library sends them (catalog/traffic.py);
headers come on top. Source: docs/architecture.md, "A training's step".
"""

from broadgauge.predict.system_curves import sent_bytes
from broadgauge.specs.case import Backend
from broadgauge.specs.gpt import DATA_TYPE_BYTES
from broadgauge.specs.model_messages import ddp_buckets, fsdp_units, gradient_elements
from broadgauge.specs.workload import TrainWorkload


def step_bytes(workload: TrainWorkload, backend: Backend, nodes: int, ranks_per_node: int) -> float:
    """Payload a step, busier direction; 0 on one node."""
    if nodes < 2:
        return 0.0
    return sum(
        count * sent_bytes(backend, op, nodes, ranks_per_node, size)
        for op, size, count in _messages(workload)
    )


def _messages(workload: TrainWorkload) -> list[tuple[str, float, int]]:
    """Collective, its size, and how often in a step."""
    gradient = DATA_TYPE_BYTES[workload.gradient_dtype]
    if workload.strategy == "ddp":
        buckets = ddp_buckets(gradient_elements(workload.model), workload.bucket_cap_bytes)
        return [("all_reduce", float(gradient * elements), 1) for elements in buckets]
    width, passes = DATA_TYPE_BYTES[workload.dtype], workload.accumulation
    *blocks, root = fsdp_units(workload.model)
    is_kept = not workload.reshard_after_forward
    gathers = [
        *(("all_gather", float(width * each), 1 if is_kept else 2 * passes) for each in blocks),
        ("all_gather", float(width * root), 1 if is_kept else passes),
    ]
    reductions = [("reduce_scatter", float(gradient * each), 1) for each in (*blocks, root)]
    return [*gathers, *reductions]
