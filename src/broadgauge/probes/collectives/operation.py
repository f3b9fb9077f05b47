"""How is one collective of one size called, and is its result right?"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.messages.vocabulary import DATA_TYPE_BYTES, CollectiveOp, DataType
from broadgauge.probes.collectives import patterns
from broadgauge.probes.identity import RankIdentity

TORCH_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ROOT = patterns.ROOT
IN_PLACE: tuple[CollectiveOp, ...] = ("all_reduce", "broadcast", "reduce")


class Operation:
    """A collective on buffers of its own; the message has `size_bytes` in all (definitions.py).

    `given` is what this rank contributes, `result` where the outcome appears: one buffer where
    torch works in place. Between checks they are zero, because sums of sums would overflow.
    """

    def __init__(
        self,
        op: CollectiveOp,
        size_bytes: int,
        dtype: DataType,
        identity: RankIdentity,
        device: Any,
    ) -> None:
        self.op, self.dtype, self.identity = op, dtype, identity
        self.elements = size_bytes // DATA_TYPE_BYTES[dtype]
        part = self.elements // identity.world_size

        def buffer(elements: int) -> Any:
            return torch.zeros(elements, dtype=TORCH_TYPES[dtype], device=device)

        self.given = buffer(part if op == "all_gather" else self.elements)
        self.result = self.given
        if op not in IN_PLACE:
            self.result = buffer(part if op == "reduce_scatter" else self.elements)

    def __call__(self) -> None:
        _CALLS[self.op](self)

    def check(self, call: Callable[[], None] | None = None) -> bool | None:
        """Does one call give exactly what it must? None: no exact values exist (patterns.py).

        `call` is another way to the same collective on these buffers: a captured one.
        """
        ranks = self.identity.world_size
        k = patterns.period(self.op, ranks, self.dtype)
        if k is None:
            return None
        self.result.fill_(-1)
        rank, device = self.identity.rank, self.result.device
        if self.op != "broadcast" or rank == ROOT:
            table = patterns.contribution(rank, ranks, k, device)
            position = rank * self.given.numel() if self.op == "all_gather" else 0
            patterns.fill(self.given, table, position)
        (call or self)()
        expected = patterns.expected(
            self.op, rank, ranks, elements=self.elements, k=k, device=device
        )
        wrong = patterns.first_wrong(self.result, expected)
        self.given.zero_()
        self.result.zero_()
        if wrong is not None:
            sys.stderr.write(f"{self.op} {self.dtype}: element {wrong} of the result is wrong\n")
        return wrong is None


def _send_to_the_next(operation: Operation) -> None:
    """A ring of neighbours, both directions at once. Source: nccl-tests, src/sendrecv.cu."""
    rank, ranks = operation.identity.rank, operation.identity.world_size
    both = [
        dist.P2POp(dist.isend, operation.given, (rank + 1) % ranks),
        dist.P2POp(dist.irecv, operation.result, (rank - 1) % ranks),
    ]
    for work in dist.batch_isend_irecv(both):
        work.wait()


_CALLS: dict[CollectiveOp, Callable[[Operation], Any]] = {
    "all_reduce": lambda it: dist.all_reduce(it.given),
    "all_gather": lambda it: dist.all_gather_into_tensor(it.result, it.given),
    "reduce_scatter": lambda it: dist.reduce_scatter_tensor(it.result, it.given),
    "all_to_all": lambda it: dist.all_to_all_single(it.result, it.given),
    "broadcast": lambda it: dist.broadcast(it.given, ROOT),
    "reduce": lambda it: dist.reduce(it.given, ROOT),
    "send_recv": _send_to_the_next,
}
