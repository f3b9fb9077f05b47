"""What does `broadgauge article` print? Published beside predicted, emulated, and yours."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.catalog.article_measured import MeasuredRun
from broadgauge.catalog.article_rows import ARTICLES, rows_of
from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.answers import AnsweredClaim, ClaimVerdict
from broadgauge.predict.articles.table import ArticleTable
from broadgauge.report.articles.columns import (
    MARK_WORDS,
    MARKS,
    NONE,
    ArticleView,
    FigureRow,
    figure_rows,
    measured_cell,
    predicted_cell,
    published_cell,
    yours_cell,
)
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence

HEAD = ("", "published", "predicted", "emulated", "yours")
CLAIM_HEAD = ("claim", "printed", "recomputed", "so")
RATIOS = (
    "In brackets: over the table's first row. Scales differ, so that is what a smaller experiment "
    "can reproduce."
)


def print_article_list(console: Console) -> None:
    """Which articles are there?"""
    rows = [
        (
            articles().sources[each.source].title,
            each.id,
            each.name,
            str(sum(len(section.rows) for section in rows_of(each.id))),
        )
        for each in ARTICLES
    ]
    print_table(("article", "id", "name", "rows"), rows, console)
    sentence("002 is a Korean copy of 000. All rows: docs/articles.md", console, "dim")


def print_article(view: ArticleView, console: Console) -> None:
    """Whose figures, at which scale; each table; the claims; why something is missing."""
    sentence(f"{view.listed.id} {view.listed.name}: {view.title}", console)
    for title, words in _scales(view):
        for line in indented(Text(f"{title:<11}{words}", style="dim"), console):
            console.print(line)
    joined = [(table, figure_rows(table, view)) for table in view.tables]
    for table, rows in joined:
        heading(table.title, console)
        print_table(HEAD, [_cells(row, table) for row in rows], console)
    if any(row.row.remark in MARKS for _, rows in joined for row in rows):
        sentence(MARK_WORDS, console, "dim")
    if any(table.is_relative for table in view.tables):
        sentence(RATIOS, console, "dim")
    _print_claims(view.claims, console)
    _print_missing([row for _, rows in joined for row in rows], console)


def _cells(row: FigureRow, table: ArticleTable) -> tuple[str, ...]:
    return (
        row.row.words,
        published_cell(row),
        predicted_cell(row, table.metric),
        measured_cell(row),
        yours_cell(row),
    )


def _scales(view: ArticleView) -> Iterator[tuple[str, str]]:
    """Each column's, or how its figures are made."""
    yield "published", "as printed; nobody edits it"
    yield "predicted", "at the article's scale, as `broadgauge validate` does it"
    examples = dict.fromkeys(table.example for table in view.tables if table.example is not None)
    commands = ", ".join(f"`broadgauge run {name}`" for name in examples)
    how = f": {commands} measures" if examples else ": no example measures these yet"
    if not view.measured:
        yield "emulated", f"nothing is stored{how}"
    for run in view.measured:
        yield "emulated", _measured_words(run)
    if not view.yours:
        yield "yours", f"no run of yours{how}"
    labels = {row.label for table in view.tables for row in table.rows if row.label is not None}
    for yours in view.yours:
        told = f"{yours.name}, at the scale of {yours.experiment_name}"
        if not any(each.figure.label in labels for each in yours.published):
            told += f", which names no figure of this article by its label{how}"
        yield "yours", told


def _measured_words(run: MeasuredRun) -> str:
    launches = "1 launch" if run.launches == 1 else f"{run.launches} launches"
    return f"{run.scale}; {run.machine}, {run.date}, {launches}: `{run.command}`"


def _print_claims(claims: Sequence[AnsweredClaim], console: Console) -> None:
    heading("Claims, recomputed from these tables", console)
    rows = [
        (
            each.claim.claim,
            each.claim.printed,
            NONE if each.figure is None else each.figure.words,
            each.verdict.value,
        )
        for each in claims
    ]
    print_table(CLAIM_HEAD, rows, console)
    for each in claims:
        if each.verdict in (ClaimVerdict.DIFFERS, ClaimVerdict.CANNOT_TELL):
            how = "" if each.figure is None else f" ({each.figure.how})"
            for line in indented(Text(f"{each.claim.claim}: {each.words}{how}"), console):
                console.print(line)


def _print_missing(rows: Sequence[FigureRow], console: Console) -> None:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.row.why:
            reasons.setdefault(row.row.why, []).append(row.row.id)
        if row.yours is not None and row.yours.estimate is None:
            reasons.setdefault(f"yours: {row.yours.reason}", []).append(row.row.id)
    if not reasons:
        return
    heading("Not predicted, or not quite as published", console)
    for why, ids in reasons.items():
        for line in indented(Text(f"{', '.join(ids)}: {why}"), console):
            console.print(line)
