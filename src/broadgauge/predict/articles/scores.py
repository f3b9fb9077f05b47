"""How far are predictions from the articles' figures? Through the predictor, as for any table.

The rows of a series that calibrate are fitted together, then its other rows are predicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.catalog.articles import articles
from broadgauge.predict.articles import clusters, two_gpus
from broadgauge.predict.articles.rows import ArticleRow, Goal, Role
from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import predict
from broadgauge.predict.scoring.scoring import Scored
from broadgauge.predict.tables.table import StepRow

GOALS: tuple[Goal, ...] = (*clusters.GOALS, *two_gpus.GOALS)
FITTED_AS = {"nebius-h100": "maknee/SkyPilot on Nebius"}
"""Series whose figures are rows of references/measured-training.csv too, and their source there:
they are predicted with the constants that were fitted without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRow:
    """A published row and what was predicted for it; None: it is only listed."""

    row: ArticleRow
    prediction: Prediction | None

    @property
    def error_ratio(self) -> float | None:
        """Predicted over published, minus one; None: it isn't scored."""
        if self.prediction is None or self.row.step_time_s is None:
            return None
        return self.prediction.step_time_s.value / self.row.step_time_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalReached:
    """A goal and where we are."""

    goal: Goal
    error_ratio: float
    """Mean over its rows, or the largest of them."""

    @property
    def is_reached(self) -> bool:
        """Is it within the limit?"""
        return self.error_ratio <= self.goal.limit_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleScores:
    """All rows of the articles' tables."""

    rows: tuple[PredictedRow, ...]
    goals: tuple[GoalReached, ...]

    @property
    def scored(self) -> tuple[Scored, ...]:
        """Those that count, each series as a source of its own."""
        return tuple(
            _scored(line, each)
            for line, each in enumerate(self.rows, start=1)
            if each.row.role is Role.SCORED
        )

    def step_s(self, row_id: str) -> float:
        """What was predicted for one row, the calibrating ones included."""
        [found] = [each.prediction for each in self.rows if each.row.id == row_id]
        assert found is not None
        return found.step_time_s.value


def article_rows() -> tuple[ArticleRow, ...]:
    """Every published figure of a training's time, in the articles' order."""
    tables = articles()
    return (
        *clusters.granite_rows(tables),
        *clusters.lora_rows(tables),
        *two_gpus.gpt2_rows(tables),
        *two_gpus.gemma_rows(tables),
    )


def article_scores(knowledge: Knowledge | None = None) -> ArticleScores:
    """Each series calibrated by its own rows, and predicted."""
    known = knowledge or default_knowledge()
    rows = article_rows()
    found: dict[str, Prediction] = {}
    for series in dict.fromkeys(row.series for row in rows):
        mine = known.without(FITTED_AS[series]) if series in FITTED_AS else known
        found |= _predicted([row for row in rows if row.series == series], mine)
    predicted = tuple(PredictedRow(row=row, prediction=found.get(row.id)) for row in rows)
    return ArticleScores(rows=predicted, goals=tuple(_reached(goal, predicted) for goal in GOALS))


def _predicted(rows: Sequence[ArticleRow], knowledge: Knowledge) -> dict[str, Prediction]:
    observed = [
        Observation(case=row.case, step_time_s=row.step_time_s)
        for row in rows
        if row.role is Role.CALIBRATES and row.case is not None and row.step_time_s is not None
    ]
    if observed:
        knowledge = fit(observed, knowledge)
    asked = [(row.id, row.case) for row in rows if row.case is not None]
    answers = predict([case for _, case in asked], knowledge)
    return {name: answer for (name, _), answer in zip(asked, answers, strict=True)}


def _reached(goal: Goal, rows: Sequence[PredictedRow]) -> GoalReached:
    errors = [
        abs(each.error_ratio)
        for each in rows
        if each.row.series == goal.series
        and each.row.role is Role.SCORED
        and (not goal.ids or each.row.id in goal.ids)
        and each.error_ratio is not None
    ]
    mean = sum(errors) / len(errors)
    return GoalReached(goal=goal, error_ratio=mean if goal.is_mean else max(errors))


def _scored(line: int, each: PredictedRow) -> Scored:
    row, prediction = each.row, each.prediction
    assert prediction is not None
    assert row.case is not None
    assert row.step_time_s is not None
    return Scored(
        row=StepRow(
            line=line,
            id=row.id,
            source=row.series,
            flags=(),
            case=row.case,
            step_time_s=row.step_time_s,
        ),
        step_time_s=prediction.step_time_s,
    )
