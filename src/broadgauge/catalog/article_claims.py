"""What do five articles claim, and what was printed? article_claims.yaml, typed."""

import functools
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from broadgauge.catalog.loading import shipped_data

ArticleId = Literal["000", "001", "003", "004"]
"""002 is a translation of 000."""


class ArticleClaim(BaseModel):
    """One sentence that a figure answers, or that nobody can answer."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str
    article: ArticleId
    section: str
    claim: str
    """In our own words."""
    printed: str
    """The article's figures, or `in words`."""
    value: float | None = None
    """The printed figure, in the unit of `figure`'s."""
    at_least: float | None = None
    at_most: float | None = None
    """Where words promise a bound."""
    figure: str | None = None
    """Of predict/articles/recomputed/figures.py; None: nothing that is published tells."""
    is_exact: bool = False
    """Must every printed digit come out? Else as near as the last one but one will do."""
    differs: str = "does not hold"
    remark: str = ""

    @model_validator(mode="after")
    def _says_what_was_printed(self) -> Self:
        said = [each for each in (self.value, self.at_least, self.at_most) if each is not None]
        if len(said) != (0 if self.figure is None else 1):
            raise ValueError(f"`{self.id}`: a figure is held against one printed value")
        return self


@functools.cache
def article_claims() -> tuple[ArticleClaim, ...]:
    """Every claim, in the articles' order."""
    return tuple(map(ArticleClaim.model_validate, shipped_data("article_claims")))
