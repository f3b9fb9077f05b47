"""How good is the predictor on a table of published step times?

Each source is predicted with constants that were fitted without it (leave one source out); rows
that calibrate a system are not scored.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.predict.calibration import Observation, fit
from broadgauge.predict.calibration_rows import (
    DEFAULT_POINTS,
    Calibrate,
    SystemKey,
    calibration_rows,
    system_of,
)
from broadgauge.predict.knowledge import Knowledge, default_knowledge
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import predict
from broadgauge.predict.scoring import (
    Scored,
    Scores,
    mean_over_sources,
    scores,
    scores_by_source,
)
from broadgauge.predict.table import MeasuredTable, Row, Unread
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
    calibration: tuple[Row, ...]
    """Rows that calibrated their system: not scored."""
    unread: tuple[Unread, ...]
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
    chosen = calibration_rows(table.rows, calibrate, num_points, known)
    calibrating = {row.line for rows in chosen.values() for row in rows}
    systems: dict[SystemKey, list[Row]] = {}
    for row in table.rows:
        if row.line not in calibrating:
            # Without calibration a source is predicted at once: that is much faster.
            key = system_of(row) if system_of(row) in chosen else (row.source,)
            systems.setdefault(key, []).append(row)
    scored: list[Scored] = []
    unread = list(table.unread)
    for key, rows in systems.items():
        mine = known.without(rows[0].source)
        points = chosen.get(key, [])
        if points:
            mine = fit([_observation(row) for row in points], mine)
        for row, prediction in zip(rows, _predictions(rows, mine), strict=True):
            if isinstance(prediction, InputError):
                unread.append(_refused(row, prediction))
            elif not _is_finite(prediction):
                unread.append(_refused(row, InputError("its prediction is no finite time")))
            else:
                scored.append(Scored(row=row, step_time_s=prediction.step_time_s))
    return Validation(
        table=table,
        calibrate=calibrate,
        num_points=num_points,
        scored=tuple(sorted(scored, key=lambda each: each.row.line)),
        calibration=tuple(sorted((r for rows in chosen.values() for r in rows), key=_line)),
        unread=tuple(sorted(unread, key=lambda each: each.line)),
    )


def score_sheet(scored: Sequence[Scored]) -> ScoreSheet:
    """Over all rows, by source, and the mean over sources."""
    by_source = scores_by_source(scored)
    return ScoreSheet(
        overall=scores(scored), mean_over_sources=mean_over_sources(by_source), by_source=by_source
    )


def _line(row: Row) -> int:
    return row.line


def _is_finite(prediction: Prediction) -> bool:
    step = prediction.step_time_s
    return step.value > 0 and all(map(math.isfinite, (step.value, step.low, step.high)))


def _observation(row: Row) -> Observation:
    return Observation(case=row.case, step_time_s=row.step_time_s)


def _predictions(rows: Sequence[Row], knowledge: Knowledge) -> list[Prediction | InputError]:
    """One answer a row: where the predictor refuses, halves find the row that it refuses."""
    try:
        return list(predict([row.case for row in rows], knowledge))
    except InputError as error:
        if len(rows) == 1:
            return [error]
    middle = len(rows) // 2
    return _predictions(rows[:middle], knowledge) + _predictions(rows[middle:], knowledge)


def _refused(row: Row, error: InputError) -> Unread:
    return Unread(
        line=row.line,
        id=row.id,
        source=row.source,
        reason=str(error).replace("\n  hint: ", " (") + (")" if error.hint else ""),
        stage="prediction",
    )
