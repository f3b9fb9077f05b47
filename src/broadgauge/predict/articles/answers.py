"""Does what an article says follow from what it published?"""

from dataclasses import dataclass
from enum import StrEnum

from broadgauge.catalog.article_claims import ArticleClaim, ArticleId, article_claims
from broadgauge.catalog.articles import Articles, articles
from broadgauge.predict.articles.recomputed.figure import RecomputedFigure
from broadgauge.predict.articles.recomputed.figures import FIGURES

HOLDS_RATIO = 0.01
"""As near as a figure of three digits that somebody rounded."""
NEAR_RATIO = 0.1
"""As near as one of one digit: "3×" for 3.29."""


class ClaimVerdict(StrEnum):
    """What becomes of a claim."""

    HOLDS = "holds"
    NEAR = "within 10 %"
    """Within a tenth: rounded."""
    DIFFERS = "differs"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredClaim:
    """A claim, and what the published figures say of it."""

    claim: ArticleClaim
    figure: RecomputedFigure | None
    """None: nothing that is published tells."""
    verdict: ClaimVerdict

    @property
    def words(self) -> str:
        """The verdict, what it means where they differ, and what to know."""
        claim = self.claim
        if self.verdict in (ClaimVerdict.DIFFERS, ClaimVerdict.CANNOT_TELL):
            return claim.differs
        return f"{self.verdict}; {claim.remark}" if claim.remark else self.verdict.value


def answered_claims(
    article: ArticleId, tables: Articles | None = None
) -> tuple[AnsweredClaim, ...]:
    """Every claim of one article, in its order."""
    known = tables or articles()
    mine = (claim for claim in article_claims() if claim.article == article)
    return tuple(_answered(claim, known) for claim in mine)


def _answered(claim: ArticleClaim, tables: Articles) -> AnsweredClaim:
    if claim.figure is None:
        return AnsweredClaim(claim=claim, figure=None, verdict=ClaimVerdict.CANNOT_TELL)
    figure = FIGURES[claim.figure](tables)
    return AnsweredClaim(claim=claim, figure=figure, verdict=_verdict(claim, figure.number))


def _verdict(claim: ArticleClaim, number: float) -> ClaimVerdict:
    if claim.at_least is not None or claim.at_most is not None:
        low = claim.at_least if claim.at_least is not None else number
        high = claim.at_most if claim.at_most is not None else number
        return ClaimVerdict.HOLDS if low <= number <= high else ClaimVerdict.DIFFERS
    assert claim.value is not None
    off_ratio = abs(number / claim.value - 1)
    if off_ratio <= HOLDS_RATIO:
        return ClaimVerdict.HOLDS
    is_near = off_ratio <= NEAR_RATIO and not claim.is_exact
    return ClaimVerdict.NEAR if is_near else ClaimVerdict.DIFFERS
