"""What is a rank told of samples that are token ids already, and of how a step takes them?"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSamples:
    """A folder that `broadgauge data prepare` wrote: messages/prepared_set.py."""

    kind: Literal["prepared"] = "prepared"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSamples:
    """Samples of random tokens that each rank makes up, the same on all."""

    kind: Literal["synthetic"] = "synthetic"
    samples: int
    total_tokens: int
    """Of all of them."""
    longest: int
    """In tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """Whole samples by a budget of tokens. The rule: probes/training/packing.py."""

    max_batch_len: int
    """Tokens that a rank takes in a micro-batch at most, padding not counted."""
    effective_batch_size: int
    """Samples of a step, of all ranks and micro-batches together."""
