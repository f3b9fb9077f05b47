"""How good is the predictor on a table of published step times?

Each source is predicted with constants that were fitted without it (leave one source out); rows
that calibrate a system are not scored.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.calibration.rows import (
    DEFAULT_POINTS,
    Calibrate,
    SystemKey,
    calibration_rows,
    system_of,
)
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import predict
from broadgauge.predict.scoring.scoring import (
    Scored,
    Scores,
    mean_over_sources,
    scores,
    scores_by_source,
)
from broadgauge.predict.tables.table import MeasuredTable, StepRow, UnreadRow
from broadgauge.specs.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSheet:
    """The figures of one set of rows."""

    overall: Scores
    mean_over_sources: Scores
    by_source: dict[str, Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """A table's rows, predicted and scored."""

    table: MeasuredTable
    calibrate: Calibrate
    num_points: int
    scored: tuple[Scored, ...]
    calibration: tuple[StepRow, ...]
    """Rows that calibrated their system: not scored."""
    unread: tuple[UnreadRow, ...]
    """Those of the table, and those that the predictor refuses."""

    @property
    def unflagged(self) -> tuple[Scored, ...]:
        """Without the rows that the table's author doubts."""
        return tuple(each for each in self.scored if not each.row.flags)


def validate(
    table: MeasuredTable,
    *,
    calibrate: Calibrate = "none",
    num_points: int = DEFAULT_POINTS,
    knowledge: Knowledge | None = None,
) -> Validation:
    """Every row of the table predicted; those that can't be are in `unread` with the reason."""
    known = knowledge or default_knowledge()
    answers = _by_groups(table.rows, lambda row: (row.source,), known, {})
    readable = [row for row in table.rows if isinstance(answers[row.line], Prediction)]
    chosen = calibration_rows(readable, calibrate, num_points, known)
    calibrating = {row.line for mine in chosen.values() for row in mine}
    if calibrating:
        rest = [row for row in readable if row.line not in calibrating]
        answers |= _by_groups(rest, system_of, known, chosen)
    scored: list[Scored] = []
    unread = list(table.unread)
    for row in table.rows:
        answer = answers[row.line]
        if isinstance(answer, InputError):
            unread.append(_refused(row, answer))
        elif row.line not in calibrating:
            scored.append(Scored(row=row, step_time_s=answer.step_time_s))
    return Validation(
        table=table,
        calibrate=calibrate,
        num_points=num_points,
        scored=tuple(scored),
        calibration=tuple(row for row in table.rows if row.line in calibrating),
        unread=tuple(sorted(unread, key=lambda each: each.line)),
    )


def _by_groups(
    rows: Sequence[StepRow],
    key_of: Callable[[StepRow], SystemKey],
    knowledge: Knowledge,
    chosen: Mapping[SystemKey, Sequence[StepRow]],
) -> dict[int, Prediction | InputError]:
    """An answer for each line: a group's rows at once, without what was fitted on their source."""
    groups: dict[SystemKey, list[StepRow]] = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    answers: dict[int, Prediction | InputError] = {}
    for key, mine in groups.items():
        known = knowledge.without(mine[0].source)
        if chosen.get(key):
            known = fit([_observation(row) for row in chosen[key]], known)
        for row, answer in zip(mine, _predictions(mine, known), strict=True):
            answers[row.line] = answer
    return answers


def score_sheet(scored: Sequence[Scored]) -> ScoreSheet:
    """Over all rows, by source, and the mean over sources."""
    by_source = scores_by_source(scored)
    return ScoreSheet(
        overall=scores(scored), mean_over_sources=mean_over_sources(by_source), by_source=by_source
    )


def _is_finite(prediction: Prediction) -> bool:
    step = prediction.step_time_s
    return step.value > 0 and all(map(math.isfinite, (step.value, step.low, step.high)))


def _observation(row: StepRow) -> Observation:
    return Observation(case=row.case, step_time_s=row.step_time_s)


def _predictions(rows: Sequence[StepRow], knowledge: Knowledge) -> list[Prediction | InputError]:
    """One answer a row: where the predictor refuses, halves find the row that it refuses."""
    try:
        found = predict([row.case for row in rows], knowledge)
    except InputError as error:
        if len(rows) == 1:
            return [error]
        middle = len(rows) // 2
        return _predictions(rows[:middle], knowledge) + _predictions(rows[middle:], knowledge)
    return [
        each if _is_finite(each) else InputError("its prediction is no finite time")
        for each in found
    ]


def _refused(row: StepRow, error: InputError) -> UnreadRow:
    return UnreadRow(
        line=row.line,
        id=row.id,
        source=row.source,
        reason=str(error).replace("\n  hint: ", " (") + (")" if error.hint else ""),
        stage="prediction",
    )
