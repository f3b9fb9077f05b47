"""busbw over algbw: which factor has each collective?"""

from typing import TYPE_CHECKING, TypeVar

from broadgauge.messages.vocabulary import CollectiveOp

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Count = TypeVar("Count", float, "npt.NDArray[np.float64]")
"""A number of ranks; or one a case, `float64[cases]`."""

_CROSSINGS: dict[CollectiveOp, int] = {
    "all_reduce": 2,
    "all_gather": 1,
    "reduce_scatter": 1,
    "all_to_all": 1,
}
"""How often (n−1)/n of the size crosses a link of the ring; the others carry the size once."""


def bus_factor(op: CollectiveOp, ranks: Count) -> Count:
    """What makes busbw of algbw? The share of S that each rank must send, in a ring.

    2(n−1)/n for all_reduce; (n−1)/n for all_gather, reduce_scatter and all_to_all; 1 for
    broadcast, reduce and send_recv. Source: nccl-tests, the `GetBw` functions of src/all_reduce.cu,
    all_gather.cu, reduce_scatter.cu, alltoall.cu, broadcast.cu, reduce.cu and sendrecv.cu.
    """
    if op not in _CROSSINGS:
        return ranks / ranks
    return _CROSSINGS[op] * (ranks - 1) / ranks
