"""What does docs/validation.md say of the articles' tables?"""

from collections.abc import Sequence

from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.claims import checked_claims
from broadgauge.predict.articles.rows import Role
from broadgauge.predict.articles.scores import ArticleScores
from broadgauge.predict.articles.second_epochs import second_epochs
from broadgauge.predict.articles.storage import (
    ANCHOR,
    MODEL_BYTES,
    StorageScores,
    storage_scores,
)
from broadgauge.report.terminal_articles import (
    CLAIM_HEAD,
    EPOCH_HEAD,
    LOAD_HEAD,
    SAVE_HEAD,
    claim_cells,
    epoch_cells,
    goal_cells,
    load_cells,
    save_cells,
    storage_goal_cells,
    storage_reasons,
)
from broadgauge.report.terminal_validation import percent
from broadgauge.report.validation_words import ARTICLES, STORAGES


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
    storage = storage_scores(articles())
    goals.append(storage_goal_cells(storage))
    claims = [claim_cells(each) for each in checked_claims(found)]
    head = ("row", "published", "measured s a step", "predicted s", "error %", "")
    assert all(each.row.role is Role.LISTED for each in found.rows if each.prediction is None)
    return {
        "The articles' tables": ARTICLES
        + "\n"
        + _table(("goal", "limit %", "error %", ""), goals)
        + "\n"
        + _table(head, rows)
        + "\nSecond epochs of e-15: the article's own estimates (half the time of one GPU, and its "
        "bytes over the nominal rate or its steps times the measured all-reduce) and our "
        "prediction, which the row of one GPU calibrates:\n\n"
        + _table(EPOCH_HEAD, [epoch_cells(each) for each in second_epochs(articles(), found)])
        + "\nNot scored, or not quite as published:\n\n"
        + listed,
        "The articles' storages": _storage_section(storage),
        "The articles' claims": "Each is recomputed from the published rows and, where the rows "
        "can be predicted, from predictions.\n\n" + _table(CLAIM_HEAD, claims),
    }


def _storage_section(found: StorageScores) -> str:
    reasons = "".join(f"- {name}: {reason}\n" for name, reason in storage_reasons(found))
    return (
        STORAGES.format(
            size=f"{MODEL_BYTES / 1e9:.1f}", fixed=f"{found.fixed_s:.1f}", anchor=ANCHOR
        )
        + "\n"
        + _table(LOAD_HEAD, [load_cells(each) for each in found.loads])
        + "\nSaving. What two rows imply if a save takes one fixed part and its bytes over the "
        "stated rate:\n\n"
        + _table(SAVE_HEAD, [save_cells(each) for each in found.saves])
        + "\nNot scored, and why:\n\n"
        + reasons
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
