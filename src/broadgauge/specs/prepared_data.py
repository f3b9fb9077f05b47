"""How is a training given samples of unequal length, and how many tokens does it take at once?"""

from typing import Self

from pydantic import Field, model_validator

from broadgauge.messages.synthetic_lengths import (
    MOST_HELD_TOKENS,
    SMALLEST_SAMPLE,
)
from broadgauge.specs.base import Spec


class PreparedData(Spec):
    """Samples that `broadgauge data prepare` has tokenised."""

    prepared: str = Field(min_length=1)
    """The folder that it wrote, on every machine of the ranks; a path starts at the experiment
    file's folder."""


class SynthesizedSamples(Spec):
    """How many samples are made up, and how long they are. Lengths are log-normal, as those of
    `broadgauge data prepare --synthesize` are: messages/synthetic_lengths.py."""

    samples: int = Field(ge=1, le=MOST_HELD_TOKENS)
    """Number of samples, which are an epoch."""
    mean_tokens: int = Field(ge=SMALLEST_SAMPLE, le=MOST_HELD_TOKENS)
    """Their mean length, exactly."""
    max_tokens: int | None = Field(default=None, ge=SMALLEST_SAMPLE, le=MOST_HELD_TOKENS)
    """Longest sample; null: the model's `seq_len`."""

    @model_validator(mode="after")
    def _is_held(self) -> Self:
        if self.total_tokens > MOST_HELD_TOKENS:
            raise ValueError(
                f"{self.total_tokens:,} tokens, and every rank holds all of them: "
                f"{MOST_HELD_TOKENS:,} at most; `broadgauge data prepare --synthesize` keeps more "
                "on disk"
            )
        return self

    @property
    def total_tokens(self) -> int:
        return self.samples * self.mean_tokens

    def longest(self, seq_len: int) -> int:
        """In tokens, of a model that takes so many."""
        return seq_len if self.max_tokens is None else self.max_tokens


class SynthesizedData(Spec):
    """Samples of random tokens that each rank makes up, the same on all: nothing is read."""

    synthesized: SynthesizedSamples
    """How many, and how long."""


class Packing(Spec):
    """Batches by tokens instead of sequences, as InstructLab makes them. The rule, and its source:
    probes/training/packing.py."""

    max_batch_len: int = Field(ge=2, le=100_000_000)
    """Tokens that a rank takes in a micro-batch at most, padding not counted. Longer samples are
    left out."""
    effective_batch_size: int = Field(ge=1, le=10_000_000)
    """Samples of a step, all ranks and micro-batches together; how many micro-batches that takes
    follows from their lengths. An epoch's last step has the samples that are left."""
