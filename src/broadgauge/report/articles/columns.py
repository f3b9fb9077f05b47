"""What stands beside a published figure: predicted, emulated, and yours.

Scales differ, so a table's figures are also shown over its first, in the same column: that is what
a smaller experiment can reproduce.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broadgauge.analysis.model import JudgedPublished
from broadgauge.catalog.article_measured import MeasuredFigure, MeasuredRun
from broadgauge.catalog.article_rows import ListedArticle
from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.answers import AnsweredClaim
from broadgauge.predict.articles.table import ArticleFigure, ArticleTable
from broadgauge.report.words.claims import RATIO
from broadgauge.report.words.quantities import show
from broadgauge.specs.estimate import Estimate

NONE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class YourRun:
    """A run of yours that has figures of an article, and its published figures beside yours."""

    name: str
    """Its folder's."""
    experiment_name: str
    published: tuple[JudgedPublished, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleView:
    """One article with all that is shown of it."""

    listed: ListedArticle
    tables: tuple[ArticleTable, ...]
    claims: tuple[AnsweredClaim, ...]
    measured: tuple[MeasuredRun, ...]
    """Of our examples of it."""
    yours: tuple[YourRun, ...]

    @property
    def title(self) -> str:
        """The article's own."""
        return articles().sources[self.listed.source].title


@dataclass(frozen=True, slots=True, kw_only=True)
class YourFigure:
    """Yours of one row."""

    run: str
    case: str | None
    metric: str
    estimate: Estimate | None
    """None: `reason` says why."""
    reason: str
    over_first: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """One published figure with all that stands beside it."""

    row: ArticleFigure
    over_first_ratio: float | None
    predicted_over_first_ratio: float | None
    measured: MeasuredFigure | None
    measured_over_first_ratio: float | None
    yours: YourFigure | None


def figure_rows(table: ArticleTable, view: ArticleView) -> tuple[FigureRow, ...]:
    """The table's rows; of several runs the first that has a figure counts."""
    first = table.rows[0]
    ours = {each.id: _measured(each, view.measured) for each in table.rows}
    first_measured = ours[first.id]
    rows = []
    for row in table.rows:
        is_other = table.is_relative and row is not first
        found = ours[row.id]
        rows.append(
            FigureRow(
                row=row,
                over_first_ratio=row.number / first.number if is_other else None,
                predicted_over_first_ratio=_ratio(row, first) if is_other else None,
                measured=found,
                measured_over_first_ratio=found.value / first_measured.value
                if is_other and found is not None and first_measured is not None
                else None,
                yours=_yours(row, view.yours),
            )
        )
    return tuple(rows)


def _ratio(row: ArticleFigure, first: ArticleFigure) -> float | None:
    if row.predicted is None or first.predicted is None:
        return None
    return row.predicted.value / first.predicted.value


def _measured(row: ArticleFigure, runs: Iterable[MeasuredRun]) -> MeasuredFigure | None:
    return next((run.figures[row.id] for run in runs if row.id in run.figures), None)


def _yours(row: ArticleFigure, runs: Sequence[YourRun]) -> YourFigure | None:
    """The first that is there; else why one of them has none."""
    found = [
        YourFigure(
            run=run.name,
            case=each.case,
            metric=each.figure.metric if each.figure.over is None else RATIO,
            estimate=each.ours,
            reason=each.reason,
            over_first=each.ours_over_first,
        )
        for run in runs
        for each in run.published
        if row.label is not None and each.figure.label == row.label
    ]
    return next((each for each in found if each.estimate is not None), next(iter(found), None))


def published_cell(row: FigureRow) -> str:
    """`12.28 (0.575×)`."""
    return _with_ratio(row.row.published, row.over_first_ratio)


def predicted_cell(row: FigureRow, metric: str) -> str:
    """With a mark where it isn't scored."""
    if row.row.predicted is None:
        return NONE
    value = row.row.predicted.value
    shown = f"{value:.2f} s" if metric == "epoch_time_s" else show(metric, value)
    words = _with_ratio(shown, row.predicted_over_first_ratio)
    return f"{words} {MARKS[row.row.remark]}" if row.row.remark in MARKS else words


MARKS = {"calibrates": "c", "from prior": "p"}
"""Behind a prediction, and what it means: MARK_WORDS."""
MARK_WORDS = "c: calibrates the others; p: from the prior of its class of networks, not scored"


def measured_cell(row: FigureRow) -> str:
    """As it was written down."""
    if row.measured is None:
        return NONE
    return _with_ratio(row.measured.shown, row.measured_over_first_ratio)


def yours_cell(row: FigureRow) -> str:
    """Of your run."""
    if row.yours is None or row.yours.estimate is None:
        return NONE
    over = row.yours.over_first
    return _with_ratio(
        show(row.yours.metric, row.yours.estimate.value), None if over is None else over.value
    )


def _with_ratio(words: str, ratio: float | None) -> str:
    return words if ratio is None else f"{words} ({show(RATIO, ratio, 2)})"
