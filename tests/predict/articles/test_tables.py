"""Tables of five articles: no published value is missing, each prediction is there or says why."""

import re
from pathlib import Path

import pytest
from tests.predict.making_articles import articles_found

from broadgauge.catalog.article_measured import measured_runs
from broadgauge.catalog.article_rows import ARTICLES, ListedArticle
from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.table import ArticleFigure, ArticleTable
from broadgauge.predict.articles.tables import article_tables
from broadgauge.running.experiments import example_names, load


@pytest.fixture(scope="module")
def tables() -> dict[str, tuple[ArticleTable, ...]]:
    return {each.id: article_tables(each.id, articles_found()) for each in ARTICLES}


@pytest.fixture(scope="module")
def rows(tables: dict[str, tuple[ArticleTable, ...]]) -> list[ArticleFigure]:
    return [row for each in tables.values() for table in each for row in table.rows]


def test_every_published_value_has_a_row(rows: list[ArticleFigure]) -> None:
    printed = {float(word.replace(",", "")) for row in rows for word in _numbers(row.published)}
    known = articles()
    values = [
        *(row.samples_per_s for row in known.throughput_samples_per_s),
        *(row.seconds for row in known.epoch2_seconds),
        *(row.peak_memory_mib for row in known.epoch2_seconds),
        *(row.twice_gibyte_per_s for row in known.all_reduce),
        *(row.seconds for row in known.step_seconds),
        *(row.total_minutes for row in known.step_seconds),
        *(row.milliseconds for row in known.reduce_scatter_ms),
        *(row.read_gbyte_per_s for row in known.storage_bandwidth),
        *(row.write_gbyte_per_s for row in known.storage_bandwidth),
        *(row.batch_loading_per_100_samples for row in known.storage_phases_seconds),
        *(row.model_loading for row in known.storage_phases_seconds),
        *(row.checkpoint_saving for row in known.storage_phases_seconds),
        *(part.total_s for row in known.estimates_net1 for part in (row.nvlink3, row.hdr)),
    ]
    assert [value for value in values if value not in printed] == []
    hours = {
        row.published for row in rows if row.id in ("a40-pair-pod", "a40-pair-tcp", "a40-pair-roce")
    }
    assert hours == {"5 h", "2 h 30", "1 h 40"}


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d[\d,]*(?:\.\d+)?", re.sub(r",(?= )", "", text))


def test_rows_have_ids_of_their_own(rows: list[ArticleFigure]) -> None:
    assert len({row.id for row in rows}) == len(rows)


def test_what_is_not_predicted_says_why(rows: list[ArticleFigure]) -> None:
    assert [row.id for row in rows if row.predicted is None and not row.why] == []
    assert sum(row.predicted is not None for row in rows) > 20


def test_examples_have_the_labels_by_which_yours_are_found(rows: list[ArticleFigure]) -> None:
    labels = {row.label for row in rows} - {None}
    published = {
        figure.label: figure.value
        for name in example_names()
        for figure in load(name, []).experiment.published
    }
    assert labels <= published.keys()
    assert len(labels) > 20


def test_a_label_is_of_the_same_figure(tables: dict[str, tuple[ArticleTable, ...]]) -> None:
    """What an example calls published is what the article's table has, in the table's metric."""
    examples = [load(name, []).experiment for name in example_names()]
    values = {figure.label: figure.value for each in examples for figure in each.published}
    for table in (table for each in tables.values() for table in each):
        if table.metric in ("samples_per_s", "step_time_s", "speedup_ratio"):
            for row in table.rows:
                if row.label is not None:
                    assert values[row.label] == pytest.approx(row.number, rel=2e-3), row.id


@pytest.mark.parametrize("listed", ARTICLES, ids=lambda listed: listed.id)
def test_what_was_measured_stands_in_the_measurements(
    listed: ListedArticle, rows: list[ArticleFigure], repository: Path
) -> None:
    text = (repository / "docs/measurements.md").read_text(encoding="utf-8")
    ids = {row.id for row in rows}
    for run in measured_runs(listed.id):
        assert run.command in text
        assert run.date.isoformat() in text
        assert run.figures.keys() <= ids
        section = text.split(run.command)[1].split("\n### ")[0]
        assert [each.shown for each in run.figures.values() if each.shown not in section] == []
