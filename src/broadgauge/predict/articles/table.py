"""What is a published table, with predictions beside it?"""

from dataclasses import dataclass

from broadgauge.predict.prediction import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleFigure:
    """One published figure."""

    id: str
    words: str
    """In our own words."""
    published: str
    """As printed, with its unit."""
    number: float
    """The same in the table's metric."""
    predicted: Interval | None = None
    """In the same; None: `why` says why there is none."""
    why: str = ""
    remark: str = ""
    """Of a prediction that isn't scored: `calibrates`."""
    label: str | None = None
    """Of `published` in an example of ours, by which a run of yours is found. None: no example has
    it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleTable:
    """Figures of one kind."""

    title: str
    metric: str
    """Of specs/workloads/metrics.py, or a name that ends with a unit."""
    rows: tuple[ArticleFigure, ...]
    is_relative: bool = True
    """Is each figure also shown over the first?"""
    example: str | None = None
    """Which of ours makes figures for the last two columns."""
