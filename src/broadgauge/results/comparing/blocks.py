"""Which launches of two cases are pairs? Those of one block, unless a resume tore them apart.

A run that was ended between the two sides of a block and resumed the next day has a pair on paper
only: what the machine did meanwhile is in its ratio. Every comparison inside a run asks here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from broadgauge.results.model import CaseSummary, Pause
from broadgauge.results.statistics import LaunchPair
from broadgauge.specs.records.record import Record
from broadgauge.specs.time_limits import TimeLimits

ValueOf = Callable[[Record], float | None]
SLACK_S = 60.0
"""On top of what a launch may take to end and the next to start, before it counts as a pause."""


def pauses_of(records: Iterable[Record], limits: TimeLimits) -> tuple[Pause, ...]:
    """When did the run stand still for longer than from one launch to the next?"""
    longest_s = limits.teardown_s + limits.rendezvous_s + SLACK_S
    found: list[Pause] = []
    last_end_s: float | None = None
    for record in sorted(records, key=lambda record: record.started_unix_s):
        if last_end_s is not None and record.started_unix_s - last_end_s > longest_s:
            found.append(Pause(from_unix_s=last_end_s, until_unix_s=record.started_unix_s))
        last_end_s = max(record.ended_unix_s, last_end_s or record.ended_unix_s)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks of a run, as two of its cases have them."""

    pairs: tuple[LaunchPair, ...]
    """Of the blocks that hold both without a pause between them."""
    num_torn: int
    """Blocks that hold both, but with a pause between them."""
    a_alone: tuple[tuple[float, ...], ...]
    """All values of A, block by block, those of pairs too."""
    b_alone: tuple[tuple[float, ...], ...]

    @property
    def has_both_orders(self) -> bool:
        """Did each of the two run first in some block?"""
        return len({pair.a_middle_s < pair.b_middle_s for pair in self.pairs}) == 2

    @property
    def note(self) -> str:
        """What was left out; empty where nothing was."""
        if not self.num_torn:
            return ""
        total = self.num_torn + len(self.pairs)
        return f"{self.num_torn} of {total} blocks left out: the run was interrupted in between"


def blocks_of(a: CaseSummary, b: CaseSummary, value_of: ValueOf) -> Blocks:
    """Pair the trials that succeeded. Positions in a block stand for times."""
    a_blocks, b_blocks = _by_block(a.good, value_of), _by_block(b.good, value_of)
    common = [block for block in a_blocks if block in b_blocks]
    whole = [block for block in common if not _is_torn(a_blocks[block] + b_blocks[block], a.pauses)]
    return Blocks(
        pairs=tuple(
            LaunchPair(
                a_values=_values(a_blocks[block], value_of),
                b_values=_values(b_blocks[block], value_of),
                a_middle_s=_mean_position(a_blocks[block]),
                b_middle_s=_mean_position(b_blocks[block]),
            )
            for block in whole
        ),
        num_torn=len(common) - len(whole),
        a_alone=tuple(_values(records, value_of) for records in a_blocks.values()),
        b_alone=tuple(_values(records, value_of) for records in b_blocks.values()),
    )


def has_only_positive(blocks: Blocks) -> bool:
    """Does everything have a logarithm, and is there anything on both sides?"""
    values = chain.from_iterable((*blocks.a_alone, *blocks.b_alone))
    return bool(blocks.a_alone and blocks.b_alone) and all(value > 0 for value in values)


def _by_block(records: Iterable[Record], value_of: ValueOf) -> dict[int, list[Record]]:
    blocks: dict[int, list[Record]] = {}
    for record in records:
        if value_of(record) is not None:
            blocks.setdefault(record.block, []).append(record)
    return blocks


def _is_torn(records: Sequence[Record], pauses: Sequence[Pause]) -> bool:
    first_s = min(record.started_unix_s for record in records)
    last_s = max(record.ended_unix_s for record in records)
    return any(first_s < p.until_unix_s and p.from_unix_s < last_s for p in pauses)


def _values(records: Iterable[Record], value_of: ValueOf) -> tuple[float, ...]:
    return tuple(value for value in map(value_of, records) if value is not None)


def _mean_position(records: Sequence[Record]) -> float:
    return sum(record.position for record in records) / len(records)
