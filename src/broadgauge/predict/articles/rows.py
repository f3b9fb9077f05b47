"""Which published figures can be predicted, from what, and what calibrates?

Every row of the articles' tables is here: scored, calibrating another, or listed with the reason.
"""

from dataclasses import dataclass
from enum import StrEnum

from broadgauge.predict.case import TrainingCase


class Role(StrEnum):
    """What becomes of a published row."""

    CALIBRATES = "calibrates"
    SCORED = "scored"
    FROM_PRIOR = "from prior"
    """Predicted, and not scored: what decides it is known as a class prior only."""
    CONTRADICTORY = "contradictory"
    """Predicted, and not scored: it contradicts other figures of its own source."""
    LISTED = "listed"
    """Not predicted; `reason` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleRow:
    """One published figure."""

    id: str
    series: str
    """Rows of one series share their calibration and are scored together."""
    published: str
    """As printed, with its unit."""
    role: Role
    case: TrainingCase | None = None
    step_time_s: float | None = None
    """The published figure as seconds a step."""
    reason: str = ""
    """Why it isn't scored, or what had to be assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a series should reach: the mean error over its scored rows, or each row's."""

    series: str
    ids: tuple[str, ...]
    """The rows that it is of; none: all scored rows of the series."""
    limit_ratio: float
    is_mean: bool
    words: str
