"""Which collectives does a step make, and how are they left out with everything else as it was?

A strategy gives its collectives to torch once, for the life of the model; each of them looks at
this switch. On and off therefore differ in the collectives alone.
"""

from collections import Counter
from typing import Any

import torch.distributed as dist

from broadgauge.messages.rank import RankGroup, StepCollective, group_of
from broadgauge.messages.vocabulary import CollectiveOp


class Communication:
    def __init__(self) -> None:
        self.is_on = True
        self._counted: Counter[tuple[CollectiveOp, int, RankGroup | None]] = Counter()
        self._groups: dict[Any, RankGroup | None] = {None: None}
        self._num_steps = 0
        """Since when it was counted, with communication on."""

    def begin_counting(self) -> None:
        """Forgets the steps before."""
        self._counted.clear()
        self._num_steps = 0

    def begin_step(self) -> None:
        """Counts a step, if communication is on."""
        self._num_steps += self.is_on

    def count(self, op: CollectiveOp, whole: Any, group: Any = None) -> None:
        """Notes one collective; `whole` is the tensor of all ranks' parts, size S of nccl-tests.

        `group`: torch's; None: all ranks.
        """
        if group not in self._groups:
            ranks = dist.get_process_group_ranks(group)
            self._groups[group] = group_of(ranks, dist.get_world_size())
        self._counted[op, whole.numel() * whole.element_size(), self._groups[group]] += 1

    def collectives(self) -> tuple[StepCollective, ...]:
        """What a communicating step made, each size once: the mean of those that were counted,
        since steps of packed samples differ in their micro-batches."""
        found = [
            StepCollective(op=op, size_bytes=size_bytes, count=count / self._num_steps, group=group)
            for (op, size_bytes, group), count in self._counted.items()
        ]
        return tuple(sorted(found, key=lambda each: (each.op, each.size_bytes)))
