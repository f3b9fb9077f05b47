"""What does `broadgauge validate` print without a file? The articles' rows, goals and claims."""

from rich.console import Console
from rich.text import Text

from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.claims import CheckedClaim, checked_claims
from broadgauge.predict.articles.scores import ArticleScores, GoalReached, PredictedRow
from broadgauge.predict.articles.second_epochs import SecondEpoch, second_epochs
from broadgauge.predict.articles.storage import (
    LIMIT_RATIO,
    ImpliedBytes,
    LoadRow,
    StorageScores,
    storage_scores,
)
from broadgauge.predict.scoring.scoring import mean_over_sources, scores, scores_by_source
from broadgauge.report.terminal_tables import heading, indented, print_table, sentence
from broadgauge.report.terminal_validation import HEAD, LEGEND, percent, score_cells

ROW_HEAD = ("row", "measured s", "predicted s", "error %", "")
GOAL_HEAD = ("goal", "limit %", "error %", "")
EPOCH_HEAD = ("second epoch", "measured s", "their nominal s", "their all-reduce s", "predicted s")
LOAD_HEAD = ("storage", "published s", "predicted s", "80 % interval", "error %", "")
SAVE_HEAD = ("two rows", "bytes of a save that they imply")
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
    heading("Second epochs of e-15: their estimates and our prediction", console)
    epochs = [epoch_cells(each) for each in second_epochs(articles(), found)]
    print_table(EPOCH_HEAD, epochs, console)
    storage = storage_scores(articles())
    heading("Loading a model from four storages", console)
    print_table(LOAD_HEAD, [load_cells(each) for each in storage.loads], console)
    heading("Saving to them: what pairs of rows imply", console)
    print_table(SAVE_HEAD, [save_cells(each) for each in storage.saves], console)
    heading("Goals", console)
    goals = [*(goal_cells(each) for each in found.goals), storage_goal_cells(storage)]
    print_table(GOAL_HEAD, goals, console)
    heading("Claims, recomputed", console)
    print_table(CLAIM_HEAD, [claim_cells(each) for each in checked_claims(found)], console)
    heading("Not scored, or not quite as published", console)
    reasons = [(each.row.id, each.row.reason) for each in found.rows]
    for name, reason in (*reasons, *storage_reasons(storage)):
        if reason:
            for line in indented(Text(f"{name}: {reason}"), console):
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


def epoch_cells(epoch: SecondEpoch) -> tuple[str, ...]:
    """One row of e-15, each figure with its error in percent of what was measured."""
    computed = (epoch.by_rate_s, epoch.by_all_reduce_s, epoch.predicted_s)
    return (
        epoch.id,
        f"{epoch.measured_s:.2f}",
        *(
            "–"
            if each is None
            else f"{each:.2f} ({percent(epoch.error_ratio(each), is_signed=True)} %)"
            for each in computed
        ),
    )


def goal_cells(each: GoalReached) -> tuple[str, ...]:
    """One goal: reached, or not yet."""
    return (
        f"{each.goal.series}: {each.goal.words}",
        percent(each.goal.limit_ratio, places=0),
        percent(each.error_ratio),
        "reached" if each.is_reached else "not yet",
    )


def storage_goal_cells(found: StorageScores) -> tuple[str, ...]:
    """The same of loading."""
    return (
        f"nebius storage: model loading, {len(found.scored)} rows from the fixed part of another",
        percent(LIMIT_RATIO, places=0),
        percent(found.error_ratio),
        "reached" if found.is_reached else "not yet",
    )


def load_cells(row: LoadRow) -> tuple[str, ...]:
    """One storage's load."""
    interval = row.predicted_s
    return (
        row.storage,
        f"{row.published_s:g}",
        f"{interval.value:.3g}",
        f"{interval.low:.3g} to {interval.high:.3g}",
        percent(row.error_ratio, is_signed=True),
        row.role.value,
    )


def save_cells(pair: ImpliedBytes) -> tuple[str, ...]:
    """Two rows of saving."""
    gbytes = pair.num_bytes / 1e9
    words = f"{gbytes:.0f} GB" if gbytes > 0 else f"{gbytes:.0f} GB: the faster one took longer"
    return " and ".join(pair.storages), words


def storage_reasons(found: StorageScores) -> tuple[tuple[str, str], ...]:
    """What is not scored of storages, and why."""
    loads = ((f"model loading, {row.storage}", row.reason) for row in found.loads)
    return (*(each for each in loads if each[1]), *found.not_predicted)


def claim_cells(each: CheckedClaim) -> tuple[str, ...]:
    """One figure of a claim."""
    return (
        f"{each.claim}: {each.figure.replace('_', ' ')}",
        f"{each.printed_ratio:g}",
        f"{each.from_rows_ratio:.3g}",
        "–" if each.predicted_ratio is None else f"{each.predicted_ratio:.3g}",
    )
