"""Has a synthesized set the count and the mean that are asked for, to the token?"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tokenizing.reading import samples_in

from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.synthesis import (
    Synthesis,
    parse_synthesis,
    sample_lengths,
    synthesize,
)


@st.composite
def syntheses(draw: st.DrawFn) -> Synthesis:
    shortest = draw(st.integers(2, 20))
    longest = draw(st.none() | st.integers(shortest, 200))
    high = 500 if longest is None else longest
    return Synthesis(
        count=draw(st.integers(1, 300)),
        mean=draw(st.floats(shortest, high)),
        sigma=draw(st.floats(0, 3)),
        min=shortest,
        max=longest,
        seed=draw(st.integers(0, 5)),
    )


@given(syntheses())
def test_the_mean_is_exact_and_the_limits_hold(asked: Synthesis) -> None:
    lengths = sample_lengths(asked)
    assert len(lengths) == asked.count
    assert int(sum(lengths)) == round(asked.count * asked.mean)
    assert min(lengths) >= asked.min
    assert asked.max is None or max(lengths) <= asked.max


@given(syntheses())
def test_a_seed_changes_the_order_alone(asked: Synthesis) -> None:
    other = Synthesis(
        count=asked.count, mean=asked.mean, sigma=asked.sigma, min=asked.min, max=asked.max, seed=9
    )
    assert sorted(sample_lengths(asked)) == sorted(sample_lengths(other))
    assert list(sample_lengths(asked)) == list(sample_lengths(asked))


def test_the_article_s_set_is_log_normal() -> None:
    """9,872 samples of 1,483 tokens on average: the logarithms' spread is sigma, and the median is
    the mean / e^(sigma²/2). Source: Johnson, Kotz and Balakrishnan 1994, chapter 14."""
    asked = Synthesis(count=9872, mean=1483)
    lengths = np.array(sample_lengths(asked))
    assert lengths.sum() == 14_640_176
    assert np.log(lengths).std() == pytest.approx(0.8, abs=0.01)
    assert np.median(lengths) == pytest.approx(1483 / math.exp(0.32), rel=0.01)


def test_a_set_is_the_same_each_time_and_another_with_another_seed(tmp_path: Path) -> None:
    text = "count=30,mean=11.5,max=20,vocabulary=70000"
    first, again = (synthesize(parse_synthesis(text), tmp_path / name) for name in "ab")
    other = synthesize(parse_synthesis(text + ",seed=1"), tmp_path / "c")
    assert first.described == again.described
    assert first.described.key != other.described.key
    assert first.described.files != other.described.files
    samples = samples_in(first.folder)
    assert sum(map(len, samples)) == 345
    assert len({each for sample in samples for each in sample}) > 300
    assert max(each for sample in samples for each in sample) < 70_000
    assert synthesize(parse_synthesis(text), tmp_path / "a").was_there


def test_the_stream_behind_a_seed_is_kept(tmp_path: Path) -> None:
    """The ids are numpy's PCG64 of [seed, 1]: what a later numpy must give, too."""
    made = synthesize(parse_synthesis("count=2,mean=4,sigma=0,vocabulary=1000"), tmp_path / "a")
    assert samples_in(made.folder) == [[549, 780, 886, 278], [722, 322, 781, 692]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("count=5", "needs `mean`"),
        ("mean=5", "needs `count`"),
        ("count=5,mean", "`mean` is no key=value"),
        ("count=5,count=5,mean=3", "is no key=value that stands once"),
        ("count=5,maen=5", "has no `maen`\n  hint: did you mean `mean`?"),
        ("count=0,mean=5", "`count` must be from 1"),
        ("count=x,mean=5", "`count` is a whole number from 0 on, not `x`"),
        ("count=5,mean=nan", "`mean` is a number from 0 on, not `nan`"),
        ("count=5,mean=1e308", "`mean` is a number from 0 on, below 10^18, not `1e308`"),
        (f"count={10**400},mean=5", "`count` is a whole number from 0 on, below 10^18"),
        (f"count=5,mean=5,max={10**30}", "`max` is a whole number from 0 on, below 10^18"),
        ("count=5,mean=1.5", "`mean` must be between `min` and `max`, not 1.5"),
        ("count=5,mean=9,max=8", "`mean` must be between"),
        ("count=5,mean=9,min=1", "`min` must be 2 or more"),
        ("count=5,mean=9,min=8,max=7", "`max` must be `min` or more"),
        ("count=50000000,mean=1e9", "1,000,000,000,000 tokens at most"),
        ("count=5,mean=9,sigma=6", "`sigma` must be at most 5"),
        ("count=5,mean=9,vocabulary=1", "`vocabulary` must be from 2"),
    ],
)
def test_what_can_not_be_is_said(text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_synthesis(text)
    assert re.search(re.escape(words), str(refused.value))


@pytest.mark.parametrize("name", ["x" * 300, "file.txt/set"])
def test_a_place_that_can_not_be_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(InputError, match=r"set.*`.* can't be (read|written)"):
        synthesize(parse_synthesis("count=2,mean=4"), tmp_path / name)
