"""How are the lengths of a set's samples distributed?"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broadgauge.messages.prepared_set import OFFSETS, PreparedSetError, TokenLengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Lengths from `shortest` to `longest` tokens, both included."""

    shortest: int
    longest: int
    num_samples: int


def token_lengths(counts: Mapping[int, int]) -> TokenLengths:
    """Of a set that is not empty. `counts`: samples by length."""
    return TokenLengths(
        shortest=min(counts),
        p25=percentile(counts, 0.25),
        median=percentile(counts, 0.5),
        p75=percentile(counts, 0.75),
        p95=percentile(counts, 0.95),
        p99=percentile(counts, 0.99),
        longest=max(counts),
    )


def percentile(counts: Mapping[int, int], share_ratio: float) -> int:
    """The smallest length that this share of the samples does not exceed: one that occurs.

    Source: Hyndman and Fan 1996, definition 1 (the inverse of the distribution function).
    """
    wanted = max(1, math.ceil(share_ratio * sum(counts.values()) - 1e-9))
    seen = 0
    for length in sorted(counts):
        seen += counts[length]
        if seen >= wanted:
            return length
    raise AssertionError("a share above 1")


def histogram(counts: Mapping[int, int], num_bins: int = 12) -> tuple[Bin, ...]:
    """Bins of equal width (the last may be narrower) from the shortest to the longest, empty ones
    among them."""
    shortest, longest = min(counts), max(counts)
    width = -(-(longest - shortest + 1) // num_bins)
    found = Counter[int]()
    for length, count in counts.items():
        found[(length - shortest) // width] += count
    return tuple(
        Bin(
            shortest=begin,
            longest=min(begin + width - 1, longest),
            num_samples=found[number],
        )
        for number, begin in enumerate(range(shortest, longest + 1, width))
    )


def counts_of(folder: Path, num_tokens: int) -> dict[int, int]:
    """Samples by length, of a prepared set on disk; its offsets are mapped, not read whole.

    Raises PreparedSetError where the offsets are not of so many tokens.
    """
    try:
        offsets = np.memmap(folder / OFFSETS, dtype="<i8", mode="r")
    except (OSError, ValueError) as error:
        raise PreparedSetError(f"`{folder / OFFSETS}` can't be read: {error}") from error
    counts = Counter[int]()
    step = 1 << 20
    for begin in range(0, len(offsets) - 1, step):
        part = np.diff(offsets[begin : begin + step + 1])
        lengths, times = np.unique(part, return_counts=True)
        counts.update(dict(zip(lengths.tolist(), times.tolist(), strict=True)))
    if int(offsets[0]) != 0 or int(offsets[-1]) != num_tokens or min(counts, default=0) < 1:
        raise PreparedSetError(
            f"`{folder / OFFSETS}` does not rise from 0 to the {num_tokens} tokens there are: the "
            "set is damaged, remove the folder and prepare it again"
        )
    return dict(counts)
