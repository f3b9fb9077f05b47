"""One article as JSON: what `broadgauge article 000 --json` prints."""

import json
from dataclasses import asdict
from typing import Any

from broadgauge.catalog.article_rows import ARTICLES, rows_of
from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.answers import AnsweredClaim
from broadgauge.report.articles.columns import ArticleView, FigureRow, figure_rows


def article_list_json() -> str:
    """Which articles are there?"""
    listed = [
        {"id": each.id, "name": each.name, "title": articles().sources[each.source].title}
        for each in ARTICLES
    ]
    return _text({"articles": listed})


def article_json(view: ArticleView) -> str:
    """Tables, claims, rows, and of which runs the figures are."""
    listed = view.listed
    return _text(
        {
            "article": {"id": listed.id, "name": listed.name, "title": view.title},
            "emulated": [run.model_dump(mode="json", exclude={"figures"}) for run in view.measured],
            "yours": [{"run": run.name, "experiment": run.experiment_name} for run in view.yours],
            "tables": [
                {
                    "title": table.title,
                    "metric": table.metric,
                    "rows": [_row(row) for row in figure_rows(table, view)],
                }
                for table in view.tables
            ],
            "claims": list(map(_claim, view.claims)),
            "rows": [
                {"section": section.section, "what": row.what, "kind": row.kind}
                | row.ours.model_dump()
                for section in rows_of(listed.id)
                for row in section.rows
            ],
        }
    )


def _row(row: FigureRow) -> dict[str, Any]:
    figure = row.row
    return {
        "id": figure.id,
        "what": figure.words,
        "published": figure.published,
        "value": figure.number,
        "over_first_ratio": row.over_first_ratio,
        "predicted": None if figure.predicted is None else asdict(figure.predicted),
        "predicted_over_first_ratio": row.predicted_over_first_ratio,
        "remark": figure.remark or None,
        "reason": figure.why or None,
        "emulated": None if row.measured is None else row.measured.model_dump(),
        "emulated_over_first_ratio": row.measured_over_first_ratio,
        "yours": None if row.yours is None else asdict(row.yours),
    }


def _claim(answer: AnsweredClaim) -> dict[str, Any]:
    figure = answer.figure
    return {
        "id": answer.claim.id,
        "claim": answer.claim.claim,
        "printed": answer.claim.printed,
        "recomputed": None if figure is None else figure.number,
        "unit": None if figure is None else figure.unit,
        "how": None if figure is None else figure.how,
        "verdict": answer.verdict.value,
        "words": answer.words,
    }


def _text(document: dict[str, Any]) -> str:
    head = {"format": "broadgauge article"}
    return json.dumps(head | document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
