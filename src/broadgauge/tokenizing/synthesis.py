"""Which samples stand in for a data set of which only count and mean length are known?

Their lengths are messages/synthetic_lengths.py's; a seed says in which order they come, and which
tokens they have: every token is equally likely, so that a training on them has no more to learn
than the logarithm of the vocabulary.

Source of count and mean: whoever asks; `count=9872,mean=1483` are those of "Network performance in
distributed training" (2025-10-16). The numbers behind a seed are the raw stream of
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
    USUAL_SIGMA,
    SyntheticLengths,
    lengths_by_quantile,
)
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.places import key_of, place_of, set_there
from broadgauge.tokenizing.preparing import PreparedFolder
from broadgauge.tokenizing.writing import SetWriter, drafting

MOST_SAMPLES = 50_000_000
MOST_TOKENS = 10**12
LARGEST_NUMBER = 10**18
"""Of any: products of two are still numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """`count=9872,mean=1483`, and what else may be said."""

    count: int
    mean: float
    sigma: float = USUAL_SIGMA
    min: int = SMALLEST_SAMPLE
    max: int | None = None
    """None: as long as the quantiles go."""
    seed: int = 0
    vocabulary: int = 256

    @property
    def total(self) -> int:
        return round(self.count * self.mean)

    @property
    def words(self) -> str:
        limits = f"at least {self.min}" + ("" if self.max is None else f" and at most {self.max}")
        return (
            f"synthesized: {self.count:,} samples of {self.mean:g} tokens on average, lengths "
            f"log-normal (sigma {self.sigma:g}), {limits}, seed {self.seed}"
        )


def parse_synthesis(text: str) -> Synthesis:
    """Of `key=value` with commas between. Raises InputError."""
    told: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not sign or not name or name in told:
            raise InputError(f"--synthesize: `{part}` is no key=value that stands once",
                             hint="--synthesize count=9872,mean=1483")  # fmt: skip
        told[name] = value
    types = {each.name: each.type for each in fields(Synthesis)}
    for name in told:
        if name not in types:
            raise InputError(f"--synthesize has no `{name}`", hint=did_you_mean(name, types))
    for name in ("count", "mean"):
        if name not in told:
            raise InputError(f"--synthesize needs `{name}`", hint="count=9872,mean=1483")
    read: dict[str, Any] = {name: _number(name, value) for name, value in told.items()}
    synthesis = Synthesis(**read)
    _check(synthesis)
    return synthesis


def _number(name: str, text: str) -> float | int:
    is_float = name in ("mean", "sigma")
    try:
        number = float(text) if is_float else int(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < LARGEST_NUMBER:
        kind = "a number" if is_float else "a whole number"
        limit = ", below 10^18" if number >= LARGEST_NUMBER else ""
        raise InputError(f"--synthesize: `{name}` is {kind} from 0 on{limit}, not `{text}`")
    return number


def _check(asked: Synthesis) -> None:
    longest = math.inf if asked.max is None else asked.max
    wrong = (
        ("count", 1 <= asked.count <= MOST_SAMPLES, f"from 1 to {MOST_SAMPLES:,}"),
        (
            "min",
            asked.min >= SMALLEST_SAMPLE,
            f"{SMALLEST_SAMPLE} or more: one token predicts none",
        ),
        ("max", asked.min <= longest, "`min` or more"),
        ("mean", asked.min <= asked.mean <= longest, "between `min` and `max`"),
        ("mean", asked.total <= MOST_TOKENS, f"such that there are {MOST_TOKENS:,} tokens at most"),
        ("sigma", asked.sigma <= 5, "at most 5"),
        ("vocabulary", 2 <= asked.vocabulary <= 2**31, "from 2 to 2^31"),
    )
    for name, is_right, rule in wrong:
        if not is_right:
            raise InputError(f"--synthesize: `{name}` must be {rule}, not {getattr(asked, name)}")


def sample_lengths(asked: Synthesis) -> Sequence[int]:
    """int64[count], whose sum is the total exactly, in the seed's order."""
    wanted = SyntheticLengths(
        count=asked.count,
        total=asked.total,
        spread_log_sd=asked.sigma,
        shortest=asked.min,
        longest=asked.max,
    )
    found: Sequence[int] = np.array(lengths_by_quantile(wanted))[_order(asked)]
    return found


def _order(asked: Synthesis) -> Any:
    """A permutation of the samples."""
    raw = np.random.PCG64(asked.seed).random_raw(asked.count)
    return np.argsort(raw, kind="stable")


def sample_tokens(asked: Synthesis, lengths: Sequence[int]) -> Iterator[Any]:
    """The ids of each sample."""
    source = np.random.PCG64([asked.seed, 1])
    for length in lengths:
        yield source.random_raw(int(length)) % np.uint64(asked.vocabulary)


def synthesize(asked: Synthesis, out: Path | None = None) -> PreparedFolder:
    """Raises InputError."""
    facts = {each.name: getattr(asked, each.name) for each in fields(asked)}
    key = key_of({"synthesized": facts, "lengths": "log-normal quantiles", "version": 1})
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
