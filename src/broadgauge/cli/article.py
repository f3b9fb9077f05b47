"""`broadgauge article`: a published article's tables, with what we and you have beside them."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.collector import no_collections
from broadgauge.results.run_path import RUN_HELP

if TYPE_CHECKING:
    from broadgauge.catalog.article_rows import ListedArticle
    from broadgauge.report.articles.columns import YourRun

COPIES = {"002": "000"}
"""A translation, and of what."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "article",
        help="show the tables of the articles that Broadgauge began with",
        description="Prints a published article's tables, with the columns published, predicted, "
        "emulated and yours, and its claims recomputed from them. Without ARTICLE: which are "
        "there. docs/articles.md has every row of them.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "article", metavar="ARTICLE", nargs="?", help="000, 001, 003, 004, or an article's name"
    )
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="RUN",
        help=f"whose figures stand under `yours`; may be repeated: {RUN_HELP}. Without it, of each "
        "experiment that has figures of the article the newest run",
    )
    parser.add_argument(
        "--runs-folder",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where the runs' folders are (default: runs)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.catalog.article_measured import measured_runs
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.predict.articles.answers import answered_claims
    from broadgauge.predict.articles.scores import article_scores
    from broadgauge.predict.articles.tables import article_tables
    from broadgauge.report.articles.as_json import article_json
    from broadgauge.report.articles.columns import ArticleView
    from broadgauge.report.articles.terminal import print_article

    if options.article is None:
        return _list(options)
    listed = _listed(options.article)
    tables = article_tables(listed.id, article_scores())
    labels = {row.label for table in tables for row in table.rows if row.label is not None}
    view = ArticleView(
        listed=listed,
        tables=tables,
        claims=answered_claims(listed.id),
        measured=measured_runs(listed.id),
        yours=tuple(_yours(options, labels)),
    )
    if options.json:
        write(article_json(view))
        return 0
    with results_console() as console:
        print_article(view, console)
    return 0


def _list(options: argparse.Namespace) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.report.articles.as_json import article_list_json
    from broadgauge.report.articles.terminal import print_article_list

    if options.json:
        write(article_list_json())
        return 0
    with results_console() as console:
        print_article_list(console)
    return 0


def _listed(text: str) -> "ListedArticle":
    """Raises InputError with the nearest name."""
    from broadgauge.catalog.article_rows import ARTICLES
    from broadgauge.specs.base import did_you_mean
    from broadgauge.specs.errors import InputError

    wanted = COPIES.get(text, text)
    for each in ARTICLES:
        if wanted in (each.id, each.name):
            return each
    names = [name for each in ARTICLES for name in (each.id, each.name)]
    hint = did_you_mean(text, names) or "`broadgauge article` lists them"
    raise InputError(f"no article is named `{text}`", hint=hint)


def _yours(options: argparse.Namespace, labels: set[str]) -> "list[YourRun]":
    """The runs that are named; else the newest of each experiment with figures of the article."""
    from broadgauge.results.run_path import run_path

    if options.run:
        return [_your_run(run_path(text, options.runs_folder)) for text in options.run]
    return [_your_run(folder) for folder in _newest(options.runs_folder, labels)]


def _newest(runs_folder: Path, labels: set[str]) -> list[Path]:
    """One folder an experiment, newest first. Runs that can't be read are not ours to report."""
    from broadgauge.results.folder import disk
    from broadgauge.results.folder.reading import read_plan
    from broadgauge.results.run_path import newest_first
    from broadgauge.specs.errors import RunFolderError

    found: dict[str, Path] = {}
    with disk.telling("read", runs_folder):
        folders = newest_first(runs_folder)
    for folder in folders:
        try:
            plan, _ = read_plan(folder)
        except RunFolderError:
            continue
        if labels & {figure.label for figure in plan.published}:
            found.setdefault(plan.experiment_name, folder)
    return list(found.values())


def _your_run(folder: Path) -> "YourRun":
    from broadgauge.analysis.store import read_analysed
    from broadgauge.report.articles.columns import YourRun

    analysis = read_analysed(folder).analysis
    return YourRun(
        name=folder.name,
        experiment_name=analysis.experiment_name,
        published=analysis.published,
    )
