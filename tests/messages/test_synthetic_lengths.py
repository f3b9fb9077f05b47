"""Have made-up lengths the count and the total that are asked for, to the token?"""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.messages.synthetic_lengths import SyntheticLengths, lengths_by_quantile


@st.composite
def requests(draw: st.DrawFn) -> SyntheticLengths:
    shortest = draw(st.integers(2, 20))
    longest = draw(st.none() | st.integers(shortest, 200))
    count = draw(st.integers(1, 300))
    return SyntheticLengths(
        num_samples=count,
        num_tokens=draw(st.integers(count * shortest, count * (longest or 500))),
        spread_log_sd=draw(st.floats(0, 3)),
        shortest=shortest,
        longest=longest,
    )


@given(requests())
def test_the_total_is_exact_and_the_limits_hold(asked: SyntheticLengths) -> None:
    lengths = lengths_by_quantile(asked)
    assert len(lengths) == asked.num_samples
    assert sum(lengths) == asked.num_tokens
    assert min(lengths) >= asked.shortest
    assert asked.longest is None or max(lengths) <= asked.longest


def test_the_article_s_set_is_log_normal() -> None:
    """9,872 samples of 1,483 tokens on average: the logarithms' spread is sigma, and the median is
    the mean / e^(sigma²/2). Source: Johnson, Kotz and Balakrishnan 1994, chapter 14."""
    lengths = lengths_by_quantile(SyntheticLengths(num_samples=9872, num_tokens=9872 * 1483))
    assert sum(lengths) == 14_640_176
    assert statistics.pstdev(map(math.log, lengths)) == pytest.approx(0.8, abs=0.01)
    assert statistics.median(lengths) == pytest.approx(1483 / math.exp(0.32), rel=0.01)
