"""What does docs/validation.md say of the articles' tables?"""

from collections.abc import Sequence

from broadgauge.predict.articles.claims import checked_claims
from broadgauge.predict.articles.rows import Role
from broadgauge.predict.articles.scores import ArticleScores
from broadgauge.report.validation.terminal import percent
from broadgauge.report.validation.terminal_articles import CLAIM_HEAD, claim_cells, goal_cells
from broadgauge.report.validation.words import ARTICLES


def article_sections(found: ArticleScores) -> dict[str, str]:
    """Goals, rows and claims."""
    goals = [goal_cells(each) for each in found.goals]
    rows = [
        (
            each.row.id,
            each.row.published,
            f"{each.row.step_time_s:.4g}",
            f"{each.prediction.step_time_s.value:.4g}",
            percent(each.error_ratio, is_signed=True),
            each.row.role.value,
        )
        for each in found.rows
        if each.prediction is not None and each.row.step_time_s is not None
    ]
    listed = "".join(
        f"- `{each.row.id}` ({each.row.published}): {each.row.reason}\n"
        for each in found.rows
        if each.row.reason
    )
    claims = [claim_cells(each) for each in checked_claims(found)]
    head = ("row", "published", "measured s a step", "predicted s", "error %", "")
    assert all(each.row.role is Role.LISTED for each in found.rows if each.prediction is None)
    return {
        "The articles' tables": ARTICLES
        + "\n"
        + _table(("goal", "limit %", "error %", ""), goals)
        + "\n"
        + _table(head, rows)
        + "\nNot scored, or not quite as published:\n\n"
        + listed,
        "The articles' claims": "Each is recomputed from the published rows and, where the rows "
        "can be predicted, from predictions.\n\n" + _table(CLAIM_HEAD, claims),
    }


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
