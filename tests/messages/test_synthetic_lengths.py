"""Have made-up lengths the count, the total and the limits that are asked for?"""

import math
from statistics import NormalDist

from hypothesis import given
from hypothesis import strategies as st

from broadgauge.messages.synthetic_lengths import SyntheticLengths, lengths_by_quantile


@st.composite
def wishes(draw: st.DrawFn) -> SyntheticLengths:
    count, shortest = draw(st.integers(1, 200)), draw(st.integers(2, 20))
    longest = draw(st.none() | st.integers(shortest, 200))
    most = count * (500 if longest is None else longest)
    return SyntheticLengths(
        count=count,
        total=draw(st.integers(count * shortest, most)),
        spread_log_sd=draw(st.floats(0, 3)),
        shortest=shortest,
        longest=longest,
    )


@given(wishes())
def test_the_total_is_exact_and_the_limits_hold(asked: SyntheticLengths) -> None:
    lengths = lengths_by_quantile(asked)
    assert len(lengths) == asked.count
    assert sum(lengths) == asked.total
    assert min(lengths) >= asked.shortest
    assert asked.longest is None or max(lengths) <= asked.longest


@given(wishes())
def test_no_length_is_further_than_a_token_from_its_quantile(asked: SyntheticLengths) -> None:
    """The scale is searched for again, with a plain sum for each guess."""
    normal = NormalDist()
    places = ((i + 0.5) / asked.count for i in range(asked.count))
    shape = [math.exp(asked.spread_log_sd * normal.inv_cdf(each)) for each in places]
    longest = asked.total if asked.longest is None else asked.longest

    def scaled(scale: float) -> list[float]:
        return [min(max(scale * each, asked.shortest), longest) for each in shape]

    low, high = 0.0, asked.total / min(shape)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(scaled(middle)) < asked.total else (low, middle)
    wanted = scaled(high)
    lengths = lengths_by_quantile(asked)
    assert all(abs(a - b) <= 1 for a, b in zip(lengths, wanted, strict=True))
