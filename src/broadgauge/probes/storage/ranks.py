"""How do the ranks agree that all of them can go on, without the network that training uses?

Over a Gloo group of their own: a rank that failed tells the others, so that nobody waits for it in
a collective. One rank needs no group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist

Said = TypeVar("Said")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    rank: int
    world_size: int
    group: Any
    """Of Gloo; None: one rank."""
    saving: Any = None
    """Another one, for checkpoints in the background; None: one rank."""

    def tell_all(self, said: Said) -> Sequence[Said]:
        """What every rank said, in the order of ranks. It is a barrier, too."""
        if self.group is None:
            return [said]
        heard: list[Any] = [None] * self.world_size
        dist.all_gather_object(heard, said, group=self.group)
        return heard

    def from_first(self, said: Said) -> Said:
        return self.tell_all(said)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BothRanks:
    """The same ranks twice, so that what hangs in one group leaves the other one in step."""

    agreeing: Peers
    """Of the thread that leads the trial."""
    working: Peers
    """Of what is measured."""


def open_ranks(rank: int, world_size: int, limit_s: float) -> BothRanks:
    """A collective. `limit_s`: of what is measured."""
    if not dist.is_initialized():
        alone = Peers(rank=0, world_size=1, group=None)
        return BothRanks(agreeing=alone, working=alone)
    limit = timedelta(seconds=limit_s)
    agreeing, working, saving = (dist.new_group(backend="gloo", timeout=limit) for _ in range(3))
    return BothRanks(
        agreeing=Peers(rank=rank, world_size=world_size, group=agreeing),
        working=Peers(rank=rank, world_size=world_size, group=working, saving=saving),
    )
