"""What do algbw and busbw mean? The definitions of nccl-tests, and nothing else.

Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the `GetBw` functions of src/*.cu. Sizes:
probes/collectives/sizes.py.
"""

from broadgauge.catalog.busbw import bus_factor
from broadgauge.specs.workloads.workload import CollectiveOp


def algbw_gbyte_per_s(size_bytes: float, time_s: float) -> float:
    """How many bytes of the operation's size per second? S / t."""
    return size_bytes / time_s / 1e9


def busbw_gbyte_per_s(op: CollectiveOp, ranks: int, size_bytes: float, time_s: float) -> float:
    """How fast must each rank's busiest link have been at least, by a ring? algbw x factor."""
    return algbw_gbyte_per_s(size_bytes, time_s) * bus_factor(op, ranks)
