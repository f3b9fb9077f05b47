"""What does `broadgauge validate` print without a file? The articles' rows, goals and claims."""

from rich.console import Console
from rich.text import Text

from broadgauge.predict.articles.claims import CheckedClaim, checked_claims
from broadgauge.predict.articles.scores import ArticleScores, GoalReached, PredictedRow
from broadgauge.predict.scoring.scoring import mean_over_sources, scores, scores_by_source
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence
from broadgauge.report.validation.terminal import HEAD, LEGEND, percent, score_cells

ROW_HEAD = ("row", "measured s", "predicted s", "error %", "")
GOAL_HEAD = ("goal", "limit %", "error %", "")
CLAIM_HEAD = ("claim", "printed", "from rows", "predicted")


def print_articles(found: ArticleScores, console: Console) -> None:
    """Scores by series, each row, the goals, the claims."""
    scored = found.scored
    by_series = scores_by_source(scored)
    sentence(f"Five articles' tables: {len(scored)} rows scored", console)
    console.print()
    table = [score_cells(name, each) for name, each in by_series.items()]
    table.append(score_cells("all rows", scores(scored)))
    table.append(score_cells("mean over series", mean_over_sources(by_series)))
    print_table(HEAD, table, console)
    sentence(LEGEND, console, "dim")
    heading("Rows", console)
    print_table(ROW_HEAD, [row_cells(each) for each in found.rows if each.prediction], console)
    heading("Goals", console)
    print_table(GOAL_HEAD, [goal_cells(each) for each in found.goals], console)
    heading("Claims, recomputed", console)
    print_table(CLAIM_HEAD, [claim_cells(each) for each in checked_claims(found)], console)
    heading("Not scored, or not quite as published", console)
    for each in found.rows:
        if each.row.reason:
            for line in indented(Text(f"{each.row.id}: {each.row.reason}"), console):
                console.print(line)


def row_cells(each: PredictedRow) -> tuple[str, ...]:
    """One published row with its prediction."""
    row, prediction = each.row, each.prediction
    assert prediction is not None
    assert row.step_time_s is not None
    return (
        f"{row.id}: {row.published}",
        f"{row.step_time_s:.4g}",
        f"{prediction.step_time_s.value:.4g}",
        percent(each.error_ratio, is_signed=True),
        row.role,
    )


def goal_cells(each: GoalReached) -> tuple[str, ...]:
    """One goal: reached, or not yet."""
    return (
        f"{each.goal.series}: {each.goal.words}",
        percent(each.goal.limit_ratio, places=0),
        percent(each.error_ratio),
        "reached" if each.is_reached else "not yet",
    )


def claim_cells(each: CheckedClaim) -> tuple[str, ...]:
    """One figure of a claim."""
    return (
        f"{each.claim}: {each.figure.replace('_', ' ')}",
        f"{each.printed_ratio:g}",
        f"{each.from_rows_ratio:.3g}",
        "–" if each.predicted_ratio is None else f"{each.predicted_ratio:.3g}",
    )
