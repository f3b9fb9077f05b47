"""What do algbw, busbw and sizes mean? The definitions of nccl-tests, and nothing else.

Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the `GetBw` functions of src/*.cu. The size S is
the total: count x type for all_reduce, broadcast, reduce and send_recv; count x ranks x type for
all_gather, reduce_scatter and all_to_all.
"""

from broadgauge.catalog.traffic import bus_factor
from broadgauge.specs.workload import CollectiveOp

BARRIER = "barrier"
"""The `op` of the block that tells what the barriers between the iterations cost on the wire."""
IN_PARTS: tuple[CollectiveOp, ...] = ("all_gather", "reduce_scatter", "all_to_all")
"""Whose message has a part for each rank."""


def algbw_gbyte_per_s(size_bytes: float, time_s: float) -> float:
    """How many bytes of the operation's size per second? S / t."""
    return size_bytes / time_s / 1e9


def busbw_gbyte_per_s(op: CollectiveOp, ranks: int, size_bytes: float, time_s: float) -> float:
    """How fast must each rank's busiest link have been at least, by a ring? algbw x factor."""
    return algbw_gbyte_per_s(size_bytes, time_s) * bus_factor(op, ranks)


def even_size_bytes(op: CollectiveOp, ranks: int, wanted_bytes: int, type_bytes: int) -> int:
    """Which size is measured? The wanted one, rounded down to whole elements and equal parts of
    the ranks; never less than one element (a rank)."""
    grain = type_bytes * ranks if op in IN_PARTS else type_bytes
    return max(wanted_bytes // grain, 1) * grain
