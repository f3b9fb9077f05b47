"""What does one forward and backward pass of one rank read?"""

import math
from dataclasses import dataclass
from typing import Any

import torch

IGNORED = -100
"""The next token where none is to be predicted: behind a sample's end. Source: torch 2.11,
functional.cross_entropy, `ignore_index`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A micro-batch. Rows that are shorter than the longest are padded at their end, where causal
    attention keeps them from everything that counts."""

    tokens: Any
    """int64[B, T]."""
    next_tokens: Any
    """int64[B, T]: the tokens that follow, or IGNORED."""
    divisor: float
    """What the mean loss over its predicted tokens is divided by, so that the sum over ranks and
    micro-batches is the mean over all that the step predicts. Infinite: a rank that has no sample
    left computes along."""
    num_samples: int
    num_tokens: int
    """Without padding."""


def idle_batch(shape: tuple[int, int], device: Any) -> Batch:
    """Rows × tokens that are computed and count as nothing."""
    tokens = torch.zeros(shape, dtype=torch.int64, device=device)
    return Batch(tokens=tokens, next_tokens=tokens, divisor=math.inf, num_samples=0, num_tokens=0)
