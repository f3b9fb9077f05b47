"""What did each rank say in a trial, validated?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from broadgauge.messages.rank import (
    BLOCK,
    CollectiveBlock,
    CommandSamples,
    StepsBlock,
    TrainSummary,
)
from broadgauge.specs.launching import RankMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBlocks:
    """The measured figures of one rank, in the order sent."""

    rank: int
    collectives: tuple[CollectiveBlock, ...] = ()
    steps: tuple[StepsBlock, ...] = ()
    summary: TrainSummary | None = None
    samples: CommandSamples | None = None


def read_blocks(messages: Sequence[Sequence[RankMessage]]) -> tuple[RankBlocks, ...]:
    """The blocks of each rank. Raises DecodeError for what no rank would say."""
    return tuple(_read_rank(rank, spoken) for rank, spoken in enumerate(messages))


def _read_rank(rank: int, messages: Sequence[RankMessage]) -> RankBlocks:
    blocks = [BLOCK(message) for message in messages if message.get("type") == "block"]
    summaries = [block for block in blocks if isinstance(block, TrainSummary)]
    samples = [block for block in blocks if isinstance(block, CommandSamples)]
    return RankBlocks(
        rank=rank,
        collectives=tuple(block for block in blocks if isinstance(block, CollectiveBlock)),
        steps=tuple(block for block in blocks if isinstance(block, StepsBlock)),
        summary=summaries[-1] if summaries else None,
        samples=samples[-1] if samples else None,
    )


Labelled = TypeVar("Labelled", CollectiveBlock, StepsBlock)


def same_of_all_ranks(
    by_rank: Sequence[Sequence[Labelled]], world_size: int
) -> list[tuple[Labelled, ...]]:
    """By label; what not every rank measured (the trial failed there) is left out."""
    by_label: dict[str, list[Labelled]] = {}
    for blocks in by_rank:
        for block in blocks:
            by_label.setdefault(block.label, []).append(block)
    return [tuple(same) for same in by_label.values() if len(same) == world_size]
