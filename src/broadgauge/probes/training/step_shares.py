"""What does a rank say of its share of the steps: samples, tokens, FLOPs, and how much was padding?

Of batches by tokens each step is another one; of equal sequences all are the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broadgauge.probes.training.packed_batches import ShareSize
from broadgauge.probes.training.trainer import Trainer


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanShare:
    """Of one rank, over the measured steps."""

    num_samples: float
    num_tokens: float
    flops: float
    micro_batches_count: float
    padding_ratio: float | None
    """Share of the computed positions; None: all rows are as long."""


def share_sizes(trainer: Trainer, steps: range) -> tuple[ShareSize, ...]:
    """Of each step; empty: all are the same."""
    packed = trainer.packed
    return () if packed is None else tuple(packed.size(trainer.seed, step) for step in steps)


def mean_share(trainer: Trainer, steps: range) -> MeanShare:
    """Of the steps that were measured, or are to be."""
    task = trainer.task
    if trainer.packed is None:
        num_samples = task.batch_per_rank * task.accumulation
        num_tokens = num_samples * task.model.seq_len
        return MeanShare(
            num_samples=num_samples,
            num_tokens=num_tokens,
            flops=trainer.flops_per_token * num_tokens,
            micro_batches_count=task.accumulation,
            padding_ratio=None,
        )
    shares = share_sizes(trainer, steps)
    num_positions = sum(share.num_positions for share in shares)
    num_tokens = sum(share.num_tokens for share in shares)
    return MeanShare(
        num_samples=sum(share.num_samples for share in shares) / len(shares),
        num_tokens=num_tokens / len(shares),
        flops=packed_flops(trainer.flops_per_token_of, shares) / len(shares),
        micro_batches_count=sum(share.num_micro_batches for share in shares) / len(shares),
        padding_ratio=1 - num_tokens / num_positions,
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
