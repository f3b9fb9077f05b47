"""What have our examples of five articles measured? article_measured.yaml, typed."""

import datetime

from pydantic import BaseModel, ConfigDict

from broadgauge.catalog.article_claims import ArticleId
from broadgauge.catalog.loading import shipped_data


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MeasuredFigure(_Measured):
    """One figure of a run."""

    shown: str
    """As docs/measurements.md has it."""
    value: float
    """In the base unit, to hold it against others of its table."""


class MeasuredRun(_Measured):
    """One run of one of our examples."""

    command: str
    article: ArticleId
    machine: str
    date: datetime.date
    launches: int
    scale: str
    """How large, and what stands for what."""
    figures: dict[str, MeasuredFigure]
    """By the row's id (predict/articles/tables.py)."""


def measured_runs(article: ArticleId) -> tuple[MeasuredRun, ...]:
    """All that were stored of one article."""
    runs = map(MeasuredRun.model_validate, shipped_data("article_measured"))
    return tuple(run for run in runs if run.article == article)
