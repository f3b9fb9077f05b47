"""Which samples stand in for a data set of which only count and mean length are known?

Their lengths are messages/synthetic_lengths.py's; a seed says in which order they come, and which
tokens they have: every token is equally likely, so that a training on them has no more to learn
than the logarithm of the vocabulary.

Source of count and mean: whoever asks; `samples=9872,mean_length=1483` are those of "Network
performance in distributed training" (2025-10-16). The numbers behind a seed are the raw stream of
numpy's PCG64, which numpy keeps from version to version (NumPy Enhancement Proposal 19).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from broadgauge.messages.prepared_set import PreparedSet
from broadgauge.messages.synthetic_lengths import (
    SMALLEST_SAMPLE,
    USUAL_LOG_SD,
    SyntheticLengths,
    lengths_by_quantile,
)
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.places import key_of, place_of, set_there
from broadgauge.tokenizing.preparing import PreparedFolder
from broadgauge.tokenizing.writing import SetWriter, drafting

FLAG = "--synthetic"
EXAMPLE = "samples=9872,mean_length=1483"
MOST_SAMPLES = 50_000_000
MOST_TOKENS = 10**12
LARGEST_NUMBER = 10**18
"""Of any: products of two are still numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRequest:
    """`samples=9872,mean_length=1483`, and what else may be said."""

    samples: int
    mean_length: float
    sigma: float = USUAL_LOG_SD
    min_length: int = SMALLEST_SAMPLE
    max_length: int | None = None
    """None: as long as the quantiles go."""
    seed: int = 0
    vocabulary: int = 256

    @property
    def num_tokens(self) -> int:
        return round(self.samples * self.mean_length)

    @property
    def words(self) -> str:
        limits = f"at least {self.min_length}"
        if self.max_length is not None:
            limits += f" and at most {self.max_length}"
        return (
            f"synthetic: {self.samples:,} samples of {self.mean_length:,g} tokens on average, "
            f"lengths log-normal (sigma {self.sigma:g}), {limits}, seed {self.seed}"
        )


def parse_synthetic(text: str) -> SyntheticRequest:
    """Of `key=value` with commas between. Raises InputError."""
    told: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not sign or not name or name in told:
            raise InputError(
                f"{FLAG}: `{part}` is no key=value that stands once", hint=f"{FLAG} {EXAMPLE}"
            )
        told[name] = value
    known = [each.name for each in fields(SyntheticRequest)]
    for name in told:
        if name not in known:
            raise InputError(f"{FLAG} has no `{name}`", hint=did_you_mean(name, known))
    for name in ("samples", "mean_length"):
        if name not in told:
            raise InputError(f"{FLAG} needs `{name}`", hint=EXAMPLE)
    read: dict[str, Any] = {name: _number(name, value) for name, value in told.items()}
    asked = SyntheticRequest(**read)
    _check(asked)
    return asked


def _number(name: str, text: str) -> float | int:
    is_float = name in ("mean_length", "sigma")
    try:
        number = float(text) if is_float else int(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < LARGEST_NUMBER:
        kind = "a number" if is_float else "a whole number"
        limit = ", below 10^18" if number >= LARGEST_NUMBER else ""
        raise InputError(f"{FLAG}: `{name}` is {kind} from 0 on{limit}, not `{text}`")
    return number


def _check(asked: SyntheticRequest) -> None:
    shortest, mean = asked.min_length, asked.mean_length
    longest = math.inf if asked.max_length is None else asked.max_length
    smallest = f"{SMALLEST_SAMPLE} or more: one token predicts none"
    wrong = (
        ("samples", 1 <= asked.samples <= MOST_SAMPLES, f"from 1 to {MOST_SAMPLES:,}"),
        ("min_length", shortest >= SMALLEST_SAMPLE, smallest),
        ("max_length", shortest <= longest, "`min_length` or more"),
        ("mean_length", shortest <= mean <= longest, "between `min_length` and `max_length`"),
        (
            "mean_length",
            asked.num_tokens <= MOST_TOKENS,
            f"such that there are {MOST_TOKENS:,} tokens at most",
        ),
        ("sigma", asked.sigma <= 5, "at most 5"),
        ("vocabulary", 2 <= asked.vocabulary <= 2**31, "from 2 to 2^31"),
    )
    for name, is_right, rule in wrong:
        if not is_right:
            raise InputError(f"{FLAG}: `{name}` must be {rule}, not {getattr(asked, name)}")


def sample_lengths(asked: SyntheticRequest) -> Sequence[int]:
    """int64[samples], whose sum is `num_tokens` exactly, in the seed's order."""
    wanted = SyntheticLengths(
        num_samples=asked.samples,
        num_tokens=asked.num_tokens,
        spread_log_sd=asked.sigma,
        shortest=asked.min_length,
        longest=asked.max_length,
    )
    found: Sequence[int] = np.array(lengths_by_quantile(wanted))[_order(asked)]
    return found


def _order(asked: SyntheticRequest) -> Any:
    """A permutation of the samples."""
    raw = np.random.PCG64(asked.seed).random_raw(asked.samples)
    return np.argsort(raw, kind="stable")


def sample_tokens(asked: SyntheticRequest, lengths: Sequence[int]) -> Iterator[Any]:
    """The ids of each sample."""
    source = np.random.PCG64([asked.seed, 1])
    for length in lengths:
        yield source.random_raw(int(length)) % np.uint64(asked.vocabulary)


def prepare_synthetic(asked: SyntheticRequest, out: Path | None = None) -> PreparedFolder:
    """Raises InputError."""
    facts = {each.name: getattr(asked, each.name) for each in fields(asked)}
    key = key_of({"synthetic": facts, "lengths": "log-normal quantiles", "version": 1})
    final = place_of(out, key)
    if (found := set_there(final, key)) is not None:
        return PreparedFolder(folder=final, described=found, was_there=True)
    with drafting(final) as draft:
        with SetWriter(draft.folder, asked.vocabulary) as writer:
            for tokens in sample_tokens(asked, sample_lengths(asked)):
                writer.add(tokens)
        described = PreparedSet(
            key=key,
            source=asked.words,
            source_sha256=None,
            tokenizer="none (random ids)",
            vocabulary=asked.vocabulary,
            token_bytes=writer.token_bytes,
            num_samples=writer.num_samples,
            num_tokens=writer.num_tokens,
            lengths=writer.lengths,
            num_records=writer.num_samples,
            files=writer.files,
        )
        draft.describe(described)
    return PreparedFolder(folder=final, described=described, was_there=False)
