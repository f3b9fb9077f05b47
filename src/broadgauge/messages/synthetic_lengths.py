"""How long are samples of which only count and mean length are known?

Lengths are log-normal: positive, most samples short and a few long, as instructions and their
answers are. The shape is an assumption, sigma (the standard deviation of the logarithm) says how
wide it is, and a set of real lengths is better than both. Sample i of n has the length at the
quantile (i + 1/2) / n, held within limits, with the scale at which all of them have the wanted
total: so the mean is exact to a token, and the shape is no matter of luck.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist

SMALLEST_SAMPLE = 2
"""Tokens: of one alone nothing can be predicted."""
USUAL_LOG_SD = 0.8
"""A guess: the 95th percentile is then 3.7 times the median."""
_BISECTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticLengths:
    """What is asked for."""

    num_samples: int
    num_tokens: int
    """Of all of them."""
    spread_log_sd: float = USUAL_LOG_SD
    shortest: int = SMALLEST_SAMPLE
    longest: int | None = None
    """None: as long as the quantiles go."""


def lengths_by_quantile(asked: SyntheticLengths) -> Sequence[int]:
    """As many as asked, but for rounding the shortest first, whose sum is `num_tokens` exactly."""
    quantiles = _normal_quantiles(asked.num_samples)
    shape = array("d", (math.exp(asked.spread_log_sd * each) for each in quantiles))
    longest = float(asked.num_tokens if asked.longest is None else asked.longest)
    scale = _scale(shape, asked, longest)
    # To a millionth of a token: machines whose exponential differs in its last digit agree.
    within = (min(max(scale * each, asked.shortest), longest) for each in shape)
    exact = array("d", (round(each, 6) for each in within))
    return _rounded(exact, asked)


def _normal_quantiles(count: int) -> Iterator[float]:
    """Ascending. Both halves are the same but for the sign."""
    normal = NormalDist()
    half = array("d", (normal.inv_cdf((i + 0.5) / count) for i in range(count // 2)))
    yield from half
    if count % 2:
        yield 0.0
    yield from (-each for each in reversed(half))


def _scale(shape: Sequence[float], asked: SyntheticLengths, longest: float) -> float:
    """What the shape is multiplied by, so that all lengths within the limits have the total."""
    sums = array("d", accumulate(shape, initial=0.0))
    low, high = 0.0, asked.num_tokens / shape[0]
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        begin = bisect_left(shape, asked.shortest / middle) if middle else len(shape)
        end = bisect_right(shape, longest / middle) if middle else len(shape)
        between = middle * (sums[end] - sums[begin])
        if asked.shortest * begin + between + longest * (len(shape) - end) < asked.num_tokens:
            low = middle
        else:
            high = middle
    return high


def _rounded(exact: Sequence[float], asked: SyntheticLengths) -> Sequence[int]:
    """Whole tokens with the same total: what is missing after rounding down goes, one each, to
    those that lost most and have room."""
    lengths = array("q", map(math.floor, exact))
    while missing := asked.num_tokens - sum(lengths):
        sign, limit = (1, asked.longest) if missing > 0 else (-1, asked.shortest)
        room = [i for i in range(len(lengths)) if lengths[i] != limit]
        room.sort(key=lambda i: sign * (lengths[i] - exact[i]))
        for i in room[: abs(missing)]:
            lengths[i] += sign
    return lengths
