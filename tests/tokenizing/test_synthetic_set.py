"""Has a synthetic set the count and the mean that are asked for, to the token?"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tokenizing.reading import samples_in

from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.synthetic_set import (
    SyntheticRequest,
    parse_synthetic,
    prepare_synthetic,
    sample_lengths,
)


@st.composite
def requests(draw: st.DrawFn) -> SyntheticRequest:
    shortest = draw(st.integers(2, 20))
    longest = draw(st.none() | st.integers(shortest, 200))
    high = 500 if longest is None else longest
    return SyntheticRequest(
        samples=draw(st.integers(1, 300)),
        mean_length=draw(st.floats(shortest, high)),
        sigma=draw(st.floats(0, 3)),
        min_length=shortest,
        max_length=longest,
        seed=draw(st.integers(0, 5)),
    )


@given(requests())
def test_a_seed_changes_the_order_alone(asked: SyntheticRequest) -> None:
    other = replace(asked, seed=9)
    assert int(sum(sample_lengths(asked))) == round(asked.samples * asked.mean_length)
    assert sorted(sample_lengths(asked)) == sorted(sample_lengths(other))
    assert list(sample_lengths(asked)) == list(sample_lengths(asked))


def test_a_set_is_the_same_each_time_and_another_with_another_seed(tmp_path: Path) -> None:
    text = "samples=30,mean_length=11.5,max_length=20,vocabulary=70000"
    first, again = (prepare_synthetic(parse_synthetic(text), tmp_path / name) for name in "ab")
    other = prepare_synthetic(parse_synthetic(text + ",seed=1"), tmp_path / "c")
    assert first.described == again.described
    assert first.described.key != other.described.key
    assert first.described.files != other.described.files
    samples = samples_in(first.folder)
    assert sum(map(len, samples)) == 345
    assert len({each for sample in samples for each in sample}) > 300
    assert max(each for sample in samples for each in sample) < 70_000
    assert prepare_synthetic(parse_synthetic(text), tmp_path / "a").was_there


def test_the_stream_behind_a_seed_is_kept(tmp_path: Path) -> None:
    """The ids are numpy's PCG64 of [seed, 1]: what a later numpy must give, too."""
    asked = parse_synthetic("samples=2,mean_length=4,sigma=0,vocabulary=1000")
    made = prepare_synthetic(asked, tmp_path / "a")
    assert samples_in(made.folder) == [[549, 780, 886, 278], [722, 322, 781, 692]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("samples=5", "needs `mean_length`"),
        ("mean_length=5", "needs `samples`"),
        ("samples=5,mean_length", "`mean_length` is no key=value"),
        ("samples=5,samples=5,mean_length=3", "is no key=value that stands once"),
        ("samples=5,maen_length=5", "has no `maen_length`\n  hint: did you mean `mean_length`?"),
        ("samples=0,mean_length=5", "`samples` must be from 1"),
        ("samples=x,mean_length=5", "`samples` is a whole number from 0 on, not `x`"),
        ("samples=5,mean_length=nan", "`mean_length` is a number from 0 on, not `nan`"),
        (
            "samples=5,mean_length=1e308",
            "`mean_length` is a number from 0 on, below 10^18, not `1e308`",
        ),
        (f"samples={10**400},mean_length=5", "`samples` is a whole number from 0 on, below 10^18"),
        (
            f"samples=5,mean_length=5,max_length={10**30}",
            "`max_length` is a whole number from 0 on, below 10^18",
        ),
        (
            "samples=5,mean_length=1.5",
            "`mean_length` must be between `min_length` and `max_length`, not 1.5",
        ),
        ("samples=5,mean_length=9,max_length=8", "`mean_length` must be between"),
        ("samples=5,mean_length=9,min_length=1", "`min_length` must be 2 or more"),
        (
            "samples=5,mean_length=9,min_length=8,max_length=7",
            "`max_length` must be `min_length` or more",
        ),
        ("samples=50000000,mean_length=1e9", "1,000,000,000,000 tokens at most"),
        ("samples=5,mean_length=9,sigma=6", "`sigma` must be at most 5"),
        ("samples=5,mean_length=9,vocabulary=1", "`vocabulary` must be from 2"),
    ],
)
def test_what_can_not_be_is_said(text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_synthetic(text)
    assert re.search(re.escape(words), str(refused.value))


@pytest.mark.parametrize("name", ["x" * 300, "file.txt/set"])
def test_a_place_that_can_not_be_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(InputError, match=r"set.*`.* can't be (read|written)"):
        prepare_synthetic(parse_synthetic("samples=2,mean_length=4"), tmp_path / name)
