"""What does `broadgauge validate --json` print? One object, ratios and not percent."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from broadgauge.predict.peers import PeerSheet
from broadgauge.predict.scoring import Scores
from broadgauge.predict.table import Unread
from broadgauge.predict.validation import ScoreSheet, Validation, score_sheet

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


def unread_object(unread: Unread) -> dict[str, Any]:
    """Where it stands, and why it isn't scored."""
    return asdict(unread)


def _dumped(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
