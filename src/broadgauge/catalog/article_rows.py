"""What is in five articles, and what have we of it? rows_of_*.yaml and article_parts.yaml, typed.

Every table, figure, script, manifest, procedure, claim and recommendation has a row.
"""

import functools
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from broadgauge.catalog.article_claims import ArticleId
from broadgauge.catalog.loading import shipped_data

NOTHING = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedArticle:
    """One article, as people name it."""

    id: ArticleId
    name: str
    source: str
    """In articles.yaml."""
    also: str = ""
    """Another copy of it."""


ARTICLES = (
    ListedArticle(
        id="000", name="openshift-network", source="redhat-network-2025", also="002 (in Korean)"
    ),
    ListedArticle(id="001", name="openshift-gpudirect", source="redhat-gpudirect-2025"),
    ListedArticle(id="003", name="gpu-networking", source="net1-2025"),
    ListedArticle(id="004", name="cloud-benchmarks", source="skypilot-2025"),
)


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OurPart(_Read):
    """What we have of something, and where that ran."""

    here: str
    """A file or command of ours, in Markdown."""
    ran: str
    """Parts between `; `, each beginning with a state of the page's legend."""


class SharedPart(OurPart):
    """What several rows have in common."""

    id: str


class PageRow(_Read):
    """One thing of an article."""

    what: str
    """In our own words, figures as printed."""
    kind: str
    here: str | None = None
    ran: str | None = None
    part: str | None = None
    """An entry of article_parts.yaml, which says both."""
    claim: str | None = None
    """An entry of article_claims.yaml, whose verdict stands beside."""

    @model_validator(mode="after")
    def _says_what_is_ours(self) -> Self:
        own = (self.here, self.ran)
        if own.count(None) != (2 if self.part else 0):
            raise ValueError(f"`{self.what}`: `here` and `ran`, or `part`")
        return self

    @property
    def ours(self) -> OurPart:
        """Of the row itself, or of the part that it names."""
        if self.part is not None:
            return shared_parts()[self.part]
        assert self.here is not None
        assert self.ran is not None
        return OurPart(here=self.here, ran=self.ran)


class PageSection(_Read):
    """Rows that belong together."""

    section: str
    rows: tuple[PageRow, ...]


def rows_of(article: ArticleId) -> tuple[PageSection, ...]:
    """All rows of one article, in its order."""
    return tuple(map(PageSection.model_validate, shipped_data(f"rows_of_{article}")))


@functools.cache
def shared_parts() -> dict[str, SharedPart]:
    """By id."""
    parts = map(SharedPart.model_validate, shipped_data("article_parts"))
    return {part.id: part for part in parts}
