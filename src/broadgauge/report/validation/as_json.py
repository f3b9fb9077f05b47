"""What does `broadgauge validate --json` print? One object, ratios and not percent."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from broadgauge.predict.articles.claims import checked_claims
from broadgauge.predict.articles.rows import Role
from broadgauge.predict.articles.scores import ArticleScores, PredictedRow
from broadgauge.predict.scoring.peers import PeerSheet
from broadgauge.predict.scoring.scoring import Scores
from broadgauge.predict.scoring.validation import ScoreSheet, Validation, score_sheet
from broadgauge.predict.tables.table import UnreadRow

FORMAT = "broadgauge validation"


def validation_json(validation: Validation, peers: Sequence[PeerSheet]) -> str:
    """A table's scores, with and without flagged rows, its peers' and what wasn't read."""
    return _dumped(
        {
            "format": FORMAT,
            "table": validation.table.name,
            "calibrate": validation.calibrate,
            "points": validation.num_points if validation.calibrate != "none" else None,
            **sheet_object(score_sheet(validation.scored)),
            "without_flagged": sheet_object(score_sheet(validation.unflagged)),
            "peers": {
                peer.name: {"peer": sheet_object(peer.peer), "ours": sheet_object(peer.ours)}
                for peer in peers
            },
            "calibration_rows": [row.id for row in validation.calibration],
            "unread": [unread_object(each) for each in validation.unread],
            "notes": list(validation.table.notes),
            "rows": [
                {
                    "line": each.row.line,
                    "id": each.row.id,
                    "source": each.row.source,
                    "measured_s": each.row.step_time_s,
                    "predicted_s": each.step_time_s.value,
                    "low_s": each.step_time_s.low,
                    "high_s": each.step_time_s.high,
                    "flags": list(each.row.flags),
                }
                for each in validation.scored
            ],
        }
    )


def articles_json(found: ArticleScores) -> str:
    """The same of the articles' tables; each series of rows is a source."""
    return _dumped(
        {
            "format": FORMAT,
            "table": "articles",
            "calibrate": "one row per system and network",
            "points": 1,
            **sheet_object(score_sheet(found.scored)),
            "goals": [
                {
                    "series": each.goal.series,
                    "words": each.goal.words,
                    "limit": each.goal.limit_ratio,
                    "error": each.error_ratio,
                    "is_reached": each.is_reached,
                }
                for each in found.goals
            ],
            "claims": [asdict(each) for each in checked_claims(found)],
            "calibration_rows": [
                each.row.id for each in found.rows if each.row.role is Role.CALIBRATES
            ],
            "unread": [
                {"id": each.row.id, "source": each.row.series, "reason": each.row.reason}
                for each in found.rows
                if each.row.role in (Role.LISTED, Role.FROM_PRIOR)
            ],
            "rows": [_article_row(each) for each in found.rows if each.prediction is not None],
        }
    )


def _article_row(each: PredictedRow) -> dict[str, Any]:
    row, prediction = each.row, each.prediction
    assert prediction is not None
    return {
        "id": row.id,
        "source": row.series,
        "role": row.role,
        "published": row.published,
        "measured_s": row.step_time_s,
        "predicted_s": prediction.step_time_s.value,
        "low_s": prediction.step_time_s.low,
        "high_s": prediction.step_time_s.high,
        "assumed": row.reason,
    }


def sheet_object(sheet: ScoreSheet) -> dict[str, Any]:
    """The three views of one set of rows."""
    return {
        "overall": scores_object(sheet.overall),
        "mean_over_sources": scores_object(sheet.mean_over_sources),
        "by_source": {name: scores_object(each) for name, each in sheet.by_source.items()},
    }


def scores_object(scores: Scores) -> dict[str, Any]:
    """Each figure; null where there was nothing to count."""
    return asdict(scores)


def unread_object(unread: UnreadRow) -> dict[str, Any]:
    """Where it stands, and why it isn't scored."""
    return asdict(unread)


def _dumped(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
