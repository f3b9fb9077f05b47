"""How is a training given samples of unequal length, and how many tokens does it take at once?

A training that has these keys calls `check_samples`: some of them say what others do.
"""

from pydantic import BaseModel, Field

from broadgauge.messages.synthetic_lengths import SMALLEST_SAMPLE
from broadgauge.messages.training_data import PreparedSamples, SyntheticSamples, TokenBudget
from broadgauge.specs.base import Spec, placed_error

MOST_HELD_TOKENS = 200_000_000
"""Of a set that each rank makes up and holds: 4 bytes a token at most, 6 while they are drawn."""
DECIDED_BY_PACKING = ("batch_per_rank", "accumulation", "epoch_samples")
"""Keys of a training that `packing` says in another way."""


class PreparedData(Spec):
    """Samples that `broadgauge data prepare` has tokenised."""

    prepared: str = Field(min_length=1)
    """The folder that it wrote, on every machine of the ranks; a path starts at the experiment
    file's folder."""

    @property
    def for_ranks(self) -> PreparedSamples:
        """What ranks are told of it."""
        return PreparedSamples(path=self.prepared)


class SyntheticData(Spec):
    """Samples of random tokens that each rank makes up, the same on all: nothing is read. Lengths
    are log-normal, as those of `broadgauge data prepare --synthetic` are."""

    samples: int = Field(ge=1, le=MOST_HELD_TOKENS)
    """Number of samples, which are an epoch."""
    mean_length: int = Field(ge=SMALLEST_SAMPLE, le=MOST_HELD_TOKENS)
    """Their mean length in tokens, exactly."""
    max_length: int | None = Field(default=None, ge=SMALLEST_SAMPLE, le=MOST_HELD_TOKENS)
    """Longest sample, in tokens; null: the model's `seq_len`."""

    @property
    def num_tokens(self) -> int:
        return self.samples * self.mean_length

    def longest(self, seq_len: int) -> int:
        """In tokens, of a model that takes so many."""
        return seq_len if self.max_length is None else self.max_length

    def for_ranks(self, seq_len: int) -> SyntheticSamples:
        """What ranks are told of it, with nothing left to choose."""
        return SyntheticSamples(
            samples=self.samples, total_tokens=self.num_tokens, longest=self.longest(seq_len)
        )


class Packing(Spec):
    """Batches by tokens instead of sequences, as InstructLab makes them. The rule, and its source:
    probes/training/packing.py."""

    max_batch_len: int = Field(ge=SMALLEST_SAMPLE, le=100_000_000)
    """Tokens that a rank takes in a micro-batch at most, padding not counted. Longer samples are
    left out."""
    effective_batch_size: int = Field(ge=1, le=10_000_000)
    """Samples of a step, all ranks and micro-batches together; how many micro-batches that takes
    follows from their lengths. An epoch's last step has the samples that are left."""

    @property
    def for_ranks(self) -> TokenBudget:
        """What ranks are told of it."""
        return TokenBudget(
            max_batch_len=self.max_batch_len, effective_batch_size=self.effective_batch_size
        )


def check_samples(
    training: BaseModel, *, data: object, packing: Packing | None, seq_len: int
) -> None:
    """Do these keys of a training go together? Raises an error of pydantic's with the place.

    `training` has DECIDED_BY_PACKING's keys; `seq_len` is its model's.
    """
    if isinstance(data, SyntheticData):
        _check_synthetic(data, seq_len)
    if packing is None:
        return
    if not isinstance(data, PreparedData | SyntheticData):
        raise placed_error(
            "`packing` takes whole samples, and a text has none",
            ("packing",),
            "`data: {prepared: FOLDER}` or `data: {samples: 9872, mean_length: 1483}`",
        )
    for key in DECIDED_BY_PACKING:
        if getattr(training, key) != type(training).model_fields[key].default:
            raise placed_error(f"`packing` decides `{key}`: one of them", (key,))


def _check_synthetic(data: SyntheticData, seq_len: int) -> None:
    longest = data.longest(seq_len)
    if longest > seq_len:
        message = f"`max_length` is {longest}, and the model takes {seq_len} tokens (`seq_len`)"
        raise placed_error(message, ("data", "max_length"), f"{seq_len} or fewer")
    if data.mean_length > longest:
        message = f"`mean_length` is {data.mean_length}, and no sample is longer than {longest}"
        raise placed_error(message, ("data", "mean_length"), f"model: {{seq_len: {longest}}}")
    if data.num_tokens > MOST_HELD_TOKENS:
        raise placed_error(
            f"{data.num_tokens:,} tokens, and every rank holds all of them: "
            f"{MOST_HELD_TOKENS:,} at most",
            ("data", "samples"),
            "`broadgauge data prepare --synthetic` keeps more on disk",
        )
