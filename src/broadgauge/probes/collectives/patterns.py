"""What must be in the buffers, before and after a collective?

Rank r holds (i + r) mod k at position i of the whole message, the last rank (i + r + 1) mod k:
small integers that depend on the position, so that a chunk in the wrong place is found as well as
a missing or doubled addend. (The last rank's shift keeps the sum from being the same everywhere
where k divides the number of ranks.)
Their sum over the ranks is exact in the data type whatever the order of additions, if it does not
exceed the last integer up to which the type has all: 2^8 for bfloat16, 2^24 for float32 (IEEE 754:
8 and 24 bits of significand). k is odd, so that chunks at powers of two differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from broadgauge.messages.vocabulary import CollectiveOp, DataType

LARGEST_EXACT: dict[DataType, int] = {"bfloat16": 2**8, "float32": 2**24}
LARGEST_PERIOD = 251
SUMS: tuple[CollectiveOp, ...] = ("all_reduce", "reduce_scatter", "reduce")
ROOT = 0
"""Of broadcast and reduce. Source: nccl-tests' default, `-r 0`."""
CHUNK_ELEMENTS = 2**22
"""Positions are made in chunks: a buffer of gigabytes is checked in 32 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternPiece:
    """Elements in a row of a result that one table explains."""

    start: int
    elements: int
    table: Any
    """float64[k]"""
    position: int
    """Of the piece's first element in the message that the table describes."""


def period(op: CollectiveOp, ranks: int, dtype: DataType) -> int | None:
    """Which k? The largest odd one whose values, or sums, are exact.

    None where there is none (sums of more than 128 ranks in bfloat16): then nothing can be checked.
    """
    addends = ranks if op in SUMS else 1
    largest = min(LARGEST_EXACT[dtype] // addends + 1, LARGEST_PERIOD)
    k = largest - (largest % 2 == 0)
    return k if k >= 3 else None


def contribution(rank: int, ranks: int, k: int, device: Any) -> Any:
    """One period of what a rank gives: float64[k]."""
    shift = rank + 1 if rank == ranks - 1 else rank
    return ((torch.arange(k, device=device) + shift) % k).double()


def total(ranks: int, k: int, device: Any) -> Any:
    """One period of the sum over all ranks: float64[k]."""
    return torch.stack([contribution(rank, ranks, k, device) for rank in range(ranks)]).sum(0)


def expected(
    op: CollectiveOp, rank: int, ranks: int, *, elements: int, k: int, device: Any
) -> list[PatternPiece]:
    """What must a rank's result hold, piece by piece? `elements` are those of the whole message.

    Nothing on a rank to which the operation promises nothing: all but the root of a reduce.
    """
    part = elements // ranks

    def given_by(sender: int) -> Any:
        return contribution(sender, ranks, k, device)

    match op:
        case "all_gather" | "all_to_all":
            return [
                PatternPiece(
                    start=sender * part,
                    elements=part,
                    table=given_by(sender),
                    position=(sender if op == "all_gather" else rank) * part,
                )
                for sender in range(ranks)
            ]
        case "reduce_scatter":
            sums = total(ranks, k, device)
            return [PatternPiece(start=0, elements=part, table=sums, position=rank * part)]
        case "reduce" if rank != ROOT:
            return []
        case "all_reduce" | "reduce":
            table = total(ranks, k, device)
        case "broadcast":
            table = given_by(ROOT)
        case "send_recv":
            table = given_by((rank - 1) % ranks)
    return [PatternPiece(start=0, elements=elements, table=table, position=0)]


def fill(buffer: Any, table: Any, first_position: int) -> None:
    """Writes the periodic `table` into `buffer[n]`, whose element 0 is at `first_position`."""
    for start, part in _chunks(buffer):
        part.copy_(table[_positions(part, first_position + start) % len(table)])


def first_wrong(result: Any, pieces: Sequence[PatternPiece]) -> int | None:
    """Which element of `result[n]` is the first that no piece explains? None: all are right."""
    for piece in pieces:
        part = result[piece.start : piece.start + piece.elements]
        wrong = first_difference(part, piece.table, piece.position)
        if wrong is not None:
            return piece.start + wrong
    return None


def first_difference(buffer: Any, table: Any, first_position: int) -> int | None:
    """Which element of `buffer[n]` is the first that is not what `table` says? None: all are."""
    for start, part in _chunks(buffer):
        expected = table[_positions(part, first_position + start) % len(table)].to(part.dtype)
        if not torch.equal(part, expected):
            return start + int((part != expected).nonzero()[0].item())
    return None


def _chunks(buffer: Any) -> list[tuple[int, Any]]:
    starts = range(0, buffer.numel(), CHUNK_ELEMENTS)
    return [(start, buffer[start : start + CHUNK_ELEMENTS]) for start in starts]


def _positions(part: Any, first: int) -> Any:
    return torch.arange(first, first + part.numel(), device=part.device)
