"""What are pods and torchrun told in our examples, and in the articles? article_differences.yaml,
typed."""

from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from broadgauge.catalog.article_claims import ArticleId
from broadgauge.catalog.loading import shipped_data


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ComparedValue(_Read):
    """A variable or an option, as an article set it and as we do."""

    name: str
    article: str | None
    """None: it does not set it."""
    ours: str | None
    """None: we don't."""
    why: str
    """Why they differ; empty where they don't."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if bool(self.why) is (self.article == self.ours):
            raise ValueError(f"`{self.name}`: a reason where the two differ, and there alone")
        return self


class ComparedPods(_Read):
    """All values of one case's pods."""

    id: str
    article: ArticleId
    what: str
    rows: tuple[ComparedValue, ...]

    @property
    def ours(self) -> dict[str, str]:
        """By name, of those that we set."""
        return {row.name: row.ours for row in self.rows if row.ours is not None}

    @property
    def theirs(self) -> dict[str, str]:
        """By name, of those that the article sets."""
        return {row.name: row.article for row in self.rows if row.article is not None}


def compared_pods() -> dict[str, ComparedPods]:
    """By id, in the articles' order."""
    read = map(ComparedPods.model_validate, shipped_data("article_differences"))
    return {each.id: each for each in read}
