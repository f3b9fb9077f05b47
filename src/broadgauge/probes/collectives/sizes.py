"""Which size of a collective is measured? Sizes are the total S of nccl-tests.

That is count x type for all_reduce, broadcast, reduce and send_recv; count x ranks x type for
all_gather, reduce_scatter and all_to_all. Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
"""

from broadgauge.messages.vocabulary import CollectiveOp

IN_PARTS: tuple[CollectiveOp, ...] = ("all_gather", "reduce_scatter", "all_to_all")
"""Whose message has a part for each rank."""


def even_size_bytes(op: CollectiveOp, ranks: int, wanted_bytes: int, type_bytes: int) -> int:
    """Which size is measured? The wanted one, rounded down to whole elements and equal parts of
    the ranks; never less than one element (a rank)."""
    grain = type_bytes * ranks if op in IN_PARTS else type_bytes
    return max(wanted_bytes // grain, 1) * grain
