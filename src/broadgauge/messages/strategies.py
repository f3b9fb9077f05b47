"""Over how many ranks does a strategy share a model's state, and what does a step send for it?

The one place that knows. Every strategy is a split of the ranks into groups that share parameters,
gradients and the optimizer's state, and ranks that hold the same share in each group, its
replicas: DDP shares nothing, FSDP over all, HSDP inside groups. So a new one is a line of
STRATEGIES, and a class in probes/training that torch wants for it.
"""

from dataclasses import dataclass
from typing import Literal

from broadgauge.messages.rank import RankGroup
from broadgauge.messages.vocabulary import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFacts:
    """What other rooms ask of a strategy."""

    shares: Literal["nothing", "over all ranks", "inside groups"]

    @property
    def is_sharded(self) -> bool:
        """Are parameters gathered before they are used?"""
        return self.shares != "nothing"


STRATEGIES: dict[Strategy, StrategyFacts] = {
    "ddp": StrategyFacts(shares="nothing"),
    "fsdp": StrategyFacts(shares="over all ranks"),
    "hsdp": StrategyFacts(shares="inside groups"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How one strategy splits the ranks of a case."""

    world_size: int
    shards: int
    """Ranks that share one replica of the model: 1 with DDP."""

    @property
    def replicas(self) -> int:
        return self.world_size // self.shards

    @property
    def shard_group(self) -> RankGroup | None:
        """Who gathers and scatters; None: all ranks."""
        return None if self.shards == self.world_size else RankGroup(size=self.shards)

    @property
    def replica_group(self) -> RankGroup | None:
        """Who sums a share's gradients; None: all ranks."""
        if self.replicas == self.world_size:
            return None
        return RankGroup(size=self.replicas, stride=self.shards)


def split_of(
    strategy: Strategy, *, world_size: int, ranks_per_node: int, shard_ranks: int | None
) -> Split:
    """`shard_ranks`: ranks of a group as somebody gave them; None: those of a node.

    Raises ValueError where the ranks can't be split so.
    """
    shares = STRATEGIES[strategy].shares
    if shares == "nothing":
        return Split(world_size=world_size, shards=1)
    if shares == "over all ranks":
        return Split(world_size=world_size, shards=world_size)
    shards = ranks_per_node if shard_ranks is None else shard_ranks
    if world_size % shards:
        words = "1 rank is" if world_size == 1 else f"{world_size} ranks are"
        raise ValueError(f"{words} no whole number of groups of {shards}")
    if shards == 1 and world_size > 1:
        raise ValueError("HSDP in groups of one rank is DDP: `strategy: ddp`")
    return Split(world_size=world_size, shards=shards)
