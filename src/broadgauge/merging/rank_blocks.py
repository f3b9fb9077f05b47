"""What did each rank say in a trial, validated?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from broadgauge.messages.rank import BLOCK, Block, CollectiveBlock, StepsBlock
from broadgauge.messages.storage import FileAccess
from broadgauge.specs.launching import RankMessage

AnyBlock = TypeVar("AnyBlock", bound=Block)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBlocks:
    """The measured figures of one rank, in the order sent."""

    rank: int
    blocks: tuple[Block, ...]

    def of(self, kind: type[AnyBlock]) -> tuple[AnyBlock, ...]:
        """Those of one kind."""
        return tuple(block for block in self.blocks if isinstance(block, kind))

    def last(self, kind: type[AnyBlock]) -> AnyBlock | None:
        """What it said last of this kind; None: nothing."""
        return next(reversed(self.of(kind)), None)


def read_blocks(messages: Sequence[Sequence[RankMessage]]) -> tuple[RankBlocks, ...]:
    """The blocks of each rank. Raises DecodeError for what no rank would say."""
    return tuple(
        RankBlocks(
            rank=rank,
            blocks=tuple(BLOCK(message) for message in spoken if message.get("type") == "block"),
        )
        for rank, spoken in enumerate(messages)
    )


Labelled = TypeVar("Labelled", CollectiveBlock, StepsBlock, FileAccess)


def same_of_all_ranks(
    by_rank: Sequence[Sequence[Labelled]], world_size: int
) -> list[tuple[Labelled, ...]]:
    """By label; what not every rank measured (the trial failed there) is left out."""
    by_label: dict[str, list[Labelled]] = {}
    for blocks in by_rank:
        for block in blocks:
            by_label.setdefault(block.label, []).append(block)
    return [tuple(same) for same in by_label.values() if len(same) == world_size]
