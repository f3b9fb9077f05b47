"""How large is a rank's part of a step whose batches are made by tokens? Each step is another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSize:
    """One rank's part of one step."""

    num_micro_batches: int
    num_samples: int
    num_tokens: int
    num_token_pairs: int
    """Sum of the squares of the lengths: what attention is computed over."""
    num_positions: int
    """With padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanShare:
    """Of one rank, over steps."""

    num_samples: float
    num_tokens: float
    flops: float
    """Model FLOPs."""
    micro_batches_count: float
    padding_ratio: float
    """Share of the computed positions."""


def mean_share(
    shares: Sequence[ShareSize], flops_per_token_of: Callable[[int], float]
) -> MeanShare:
    """Of one step or more. `flops_per_token_of`: as `packed_flops` takes it."""
    count = len(shares)
    num_tokens = sum(share.num_tokens for share in shares)
    return MeanShare(
        num_samples=sum(share.num_samples for share in shares) / count,
        num_tokens=num_tokens / count,
        flops=packed_flops(flops_per_token_of, shares) / count,
        micro_batches_count=sum(share.num_micro_batches for share in shares) / count,
        padding_ratio=1 - num_tokens / sum(share.num_positions for share in shares),
    )


def packed_flops(flops_per_token_of: Callable[[int], float], shares: Sequence[ShareSize]) -> float:
    """Model FLOPs of samples, each attending to itself alone, from those of a token in a sequence
    of so many: they are linear in the sequence's length, so those of a sample are a·length +
    b·length². Padding counts as nothing."""
    at_one, at_two = map(flops_per_token_of, (1, 2))
    slope = at_two - at_one
    num_tokens = sum(share.num_tokens for share in shares)
    num_pairs = sum(share.num_token_pairs for share in shares)
    return (at_one - slope) * num_tokens + slope * num_pairs
