"""Claims of five articles, recomputed: which hold, and that the figures decide it."""

import math

import pytest

from broadgauge.catalog.article_claims import ArticleClaim, ArticleId, article_claims
from broadgauge.catalog.article_rows import ARTICLES
from broadgauge.catalog.articles import AllReduceTime, Articles, articles
from broadgauge.predict.articles.answers import AnsweredClaim, ClaimVerdict, answered_claims
from broadgauge.predict.articles.recomputed import gpt2, skypilot
from broadgauge.predict.articles.recomputed.figures import FIGURES

KNOWN = {
    "vnic-gain": (132.23, ClaimVerdict.HOLDS),
    "sriov-gain": (3.2866, ClaimVerdict.NEAR),
    "pod-below-one": (0.16214, ClaimVerdict.HOLDS),
    "granite-steps": (2.5708, ClaimVerdict.DIFFERS),
    "roce-third": (3.0, ClaimVerdict.HOLDS),
    "tcp-half": (2.0, ClaimVerdict.HOLDS),
    "small-scaling": (2.5032, ClaimVerdict.DIFFERS),
    "h2-nvlink": (1.8678, ClaimVerdict.DIFFERS),
    "epoch-bytes": (3.1379, ClaimVerdict.HOLDS),
    "nvlink-speed": (85.518, ClaimVerdict.DIFFERS),
    "gloo-hdr-time": (1.6484, ClaimVerdict.DIFFERS),
    "gloo-eth-time": (1.6484, ClaimVerdict.HOLDS),
    "orders": (7.3507, ClaimVerdict.DIFFERS),
    "nine-by-step": (9.0455, ClaimVerdict.HOLDS),
    "nine-by-total": (7.5714, ClaimVerdict.DIFFERS),
    "reduce-scatter": (12.286, ClaimVerdict.DIFFERS),
    "twenty": (21.066, ClaimVerdict.NEAR),
    "almost-two": (2.0566, ClaimVerdict.DIFFERS),
    "lost-hour": (12.111, ClaimVerdict.HOLDS),
    "load-choice": (1.6811, ClaimVerdict.DIFFERS),
    "six-with-a-save": (5.4952, ClaimVerdict.DIFFERS),
}
"""Worked out by hand from the printed tables."""


def answered(tables: Articles | None = None) -> dict[str, AnsweredClaim]:
    return {
        answer.claim.id: answer
        for listed in ARTICLES
        for answer in answered_claims(listed.id, tables)
    }


@pytest.mark.parametrize(("name", "expected"), KNOWN.items())
def test_a_claim_is_what_its_figures_say(name: str, expected: tuple[float, ClaimVerdict]) -> None:
    answer = answered()[name]
    assert answer.figure is not None
    assert math.isclose(answer.figure.number, expected[0], rel_tol=1e-4)
    assert answer.verdict is expected[1]


def test_every_claim_has_its_answer_and_every_figure_its_claim() -> None:
    found = answered()
    assert found.keys() == {claim.id for claim in article_claims()}
    assert {claim.figure for claim in article_claims()} - {None} == FIGURES.keys()
    for answer in found.values():
        assert answer.words
        is_unknown = answer.verdict is ClaimVerdict.CANNOT_TELL
        assert is_unknown == (answer.figure is None)
        if is_unknown:
            assert answer.claim.differs.startswith("can't tell: "), answer.claim.id


def test_verdicts_follow_the_published_values() -> None:
    """Were the job over Ethernet 63 minutes long, it would be 9 times."""
    slow, fast = articles().step_seconds
    longer = slow.model_copy(update={"total_minutes": 63.0})
    tables = articles().model_copy(update={"step_seconds": (longer, fast)})
    assert answered(tables)["nine-by-total"].verdict is ClaimVerdict.HOLDS
    assert answered(tables)["nine-by-step"].verdict is ClaimVerdict.HOLDS


def test_two_ways_of_counting_cancel_over_nvlink_only() -> None:
    """The article counts twice the bytes; 600 GB/s are both directions of NVLink, HDR's 25 one."""
    tables = articles()
    nvlink = gpt2.nominal_s(tables, "nvlink3"), gpt2.one_way_s(tables, "nvlink3")
    assert math.isclose(nvlink[0].number, nvlink[1].number)
    hdr = gpt2.nominal_s(tables, "hdr"), gpt2.one_way_s(tables, "hdr")
    assert math.isclose(hdr[0].number, 2 * hdr[1].number)


@pytest.mark.parametrize("row", articles().all_reduce, ids=lambda row: f"{row.path}-{row.backend}")
def test_printed_seconds_are_those_of_twice_gibibytes(row: AllReduceTime) -> None:
    """Five rows round to the seconds beside them; InfiniBand by Gloo does not."""
    number = gpt2.seconds_by_speed(articles(), row.path, row.backend).number
    is_odd = (row.path, row.backend) == ("hdr", "gloo")
    assert (abs(number - row.seconds) <= 0.0051) != is_odd


def test_whole_jobs_gain_less_the_more_they_save() -> None:
    ratios = [skypilot.end_to_end(articles(), saves).number for saves in range(4)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 7
    assert ratios[1] < 6


@pytest.mark.parametrize(
    ("changes", "is_right"),
    [
        ({"value": 1.0, "figure": "orders"}, True),
        ({"figure": "orders"}, False),
        ({"value": 1.0}, False),
        ({"value": 1.0, "at_most": 2.0, "figure": "orders"}, False),
        ({}, True),
    ],
)
def test_a_claim_is_held_against_one_printed_value(
    changes: dict[str, object], is_right: bool
) -> None:
    article: ArticleId = "003"
    fields = {"id": "a", "article": article, "section": "s", "claim": "c", "printed": "p"}
    if is_right:
        ArticleClaim.model_validate(fields | changes)
        return
    with pytest.raises(ValueError, match="one printed value"):
        ArticleClaim.model_validate(fields | changes)
