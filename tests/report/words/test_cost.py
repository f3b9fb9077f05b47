"""Are dollars, days and tokens written with three digits that count, and in units of their size?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.predict.answering.cost import WholeTraining
from broadgauge.predict.prediction import Interval
from broadgauge.report.words.cost import days_words, tokens_title, usd_words, whole_cells


@pytest.mark.parametrize(
    ("usd", "words"),
    [
        (None, "unknown"),
        (0.0, "$0"),
        (0.00314159, "$0.00314"),
        (2.8e-5, "<$0.001"),
        (3.14159, "$3.14"),
        (99.96, "$100"),
        (838.4, "$838"),
        (12_345.0, "$12,300"),
        (999_600.0, "$1M"),
        (1_234_567.0, "$1.23M"),
        (2.5e9, "$2,500M"),
    ],
)
def test_dollars(usd: float | None, words: str) -> None:
    assert usd_words(usd) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(90, "1.5 min"), (7200, "2 h"), (86_400, "24 h"), (172_800, "2 days"), (3.2e9, "37,000 days")],
)
def test_days(seconds: float, words: str) -> None:
    assert days_words(seconds) == words


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(1.5e12, "1.5T tokens"), (3e11, "300B tokens"), (2e6, "2M tokens"), (500, "500 tokens")],
)
def test_tokens(tokens: float, words: str) -> None:
    assert tokens_title(tokens) == words


@given(st.floats(0.01, 1e11))
def test_no_more_than_half_a_percent_is_lost(usd: float) -> None:
    words = usd_words(usd).removeprefix("$").replace(",", "")
    written = float(words.removesuffix("M")) * (1e6 if words.endswith("M") else 1)
    assert written == pytest.approx(usd, rel=0.0051)


def test_a_unit_of_both_ends_stands_once() -> None:
    day = 86_400.0
    whole = WholeTraining(
        tokens_count=1e12,
        time_s=Interval(value=10 * day, low=1.5 * day, high=20 * day),
        usd=Interval(value=3e6, low=9e5, high=4e6),
    )
    assert whole_cells(whole) == ("10 days", "36 h to 20 days", "$3M", "$900,000 to $4M")
    same = WholeTraining(
        tokens_count=1e12, time_s=Interval(value=10 * day, low=5 * day, high=20 * day), usd=None
    )
    assert whole_cells(same) == ("10 days", "5 to 20 days", "unknown", "")
