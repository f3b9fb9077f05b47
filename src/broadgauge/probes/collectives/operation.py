"""How is one collective of one size called, and is its result right?"""

import sys
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.probes.collectives import patterns
from broadgauge.probes.identity import RankIdentity
from broadgauge.specs.workload import DATA_TYPE_BYTES, CollectiveOp, DataType

TORCH_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Operation:
    """A collective on buffers of its own; the message has `size_bytes` in all (definitions.py).

    all_reduce is in place, as torch has it. Between checks the buffers are zero, because sums of
    sums would overflow.
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
        elements = size_bytes // DATA_TYPE_BYTES[dtype]
        self.part_elements = elements // identity.world_size
        self.message = torch.zeros(elements, dtype=TORCH_TYPES[dtype], device=device)
        self.part = None
        if op != "all_reduce":
            self.part = torch.zeros_like(self.message[: self.part_elements])

    def __call__(self) -> None:
        match self.op:
            case "all_reduce":
                dist.all_reduce(self.message)
            case "all_gather":
                dist.all_gather_into_tensor(self.message, self.part)
            case "reduce_scatter":
                dist.reduce_scatter_tensor(self.part, self.message)

    def check(self) -> bool | None:
        """Does one call give exactly what it must? None: no exact values exist (patterns.py)."""
        k = patterns.period(self.identity.world_size, self.dtype)
        if k is None:
            return None
        self._fill(k)
        self()
        wrong = self._first_difference(k)
        self.message.zero_()
        if wrong is not None:
            sys.stderr.write(f"{self.op} {self.dtype}: element {wrong} of the result is wrong\n")
        return wrong is None

    def _fill(self, k: int) -> None:
        rank, device = self.identity.rank, self.message.device
        table = patterns.contribution(rank, self.identity.world_size, k, device)
        self.message.fill_(-1)
        if self.op == "all_gather":
            patterns.fill(self.part, table, rank * self.part_elements)
        else:
            patterns.fill(self.message, table, 0)

    def _first_difference(self, k: int) -> int | None:
        rank, size = self.identity.rank, self.part_elements
        tables = patterns.result_tables(self.op, self.identity.world_size, k, self.message.device)
        if self.op == "all_reduce":
            return patterns.first_difference(self.message, tables[0], 0)
        if self.op == "reduce_scatter":
            return patterns.first_difference(self.part, tables[rank], rank * size)
        for owner, table in enumerate(tables):
            part = self.message[owner * size : (owner + 1) * size]
            wrong = patterns.first_difference(part, table, owner * size)
            if wrong is not None:
                return owner * size + wrong
        return None
