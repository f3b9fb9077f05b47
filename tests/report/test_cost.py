"""Do the terminal, the page and the exports show dollars where they are known, and only there?"""

import csv
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.export.run_tables import COST_COLUMNS, to_csv, to_json
from broadgauge.report.page.html import render
from broadgauge.report.terminal.printing import print_closing_table, print_run
from broadgauge.results.cost import cost_of
from broadgauge.results.model import RunSummary
from broadgauge.specs.cost import Cost

GIVEN = Cost(usd_per_node_hour=2.0, tokens=3 * 10**11)


@pytest.fixture(scope="module")
def priced(run: RunSummary) -> AnalysedRun:
    return replace(analysed(run), cost=cost_of(run, GIVEN))


def printed(printer, shown: AnalysedRun, width: int) -> str:
    stream = io.StringIO()
    printer(shown, Console(file=stream, width=width))
    return stream.getvalue()


def test_eighty_columns_still_hold_the_table(priced: AnalysedRun, run: RunSummary) -> None:
    """Dollars have a table of their own where they would make the first one too wide."""
    plain, with_dollars = (
        printed(print_closing_table, analysed(run), 80),
        printed(print_closing_table, priced, 80),
    )
    first = plain.splitlines()[0]
    assert first in with_dollars
    assert with_dollars.splitlines()[0] == first
    assert printed(print_closing_table, priced, 120).splitlines()[0] != first


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_the_closing_table_has_dollars_at_any_width(priced: AnalysedRun, width: int) -> None:
    text = printed(print_closing_table, priced, width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for part in ("$/10⁹ tokens", "a run", "300B tokens", "days", "$437"):
        assert part in words, part
    assert "cost: $2 for a node and hour (as given); the trials of this run: $0.2" in words


def test_show_has_each_figure_with_its_interval(priced: AnalysedRun) -> None:
    text = printed(print_run, priced, 120)
    for title in ("$/10⁹ tokens", "$ a run", "time of 300B tokens", "cost of 300B"):
        assert title in text, title


def test_the_page_has_them_too_and_says_what_they_mean(priced: AnalysedRun) -> None:
    page = render(priced)
    for part in ("$/10⁹ tokens", "$ a run", "300B tokens", "$2 for a node and hour"):
        assert part in page, part
    assert "all GPUs (or nodes) of a case are paid for as long as it trains" in page


def test_exports_have_them_trial_by_trial(priced: AnalysedRun) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(priced))))
    assert set(COST_COLUMNS) < set(rows[0])
    for row in rows:
        nodes = int(row["shape"].partition("x")[0])
        assert float(row["price_usd_per_hour"]) == 2 * nodes
        assert row["price_source"] == "$2 for a node and hour (as given)"
        if row["tokens_per_s"]:
            expected = 2 * nodes * 1e9 / float(row["tokens_per_s"]) / 3600
            assert float(row["usd_per_gigatoken"]) == pytest.approx(expected)
        assert bool(row["usd_per_run"]) == (row["status"] == "ok")
    document = json.loads(to_json(priced))
    assert document["cost"]["prices"] == ["$2 for a node and hour (as given)"]
    assert document["cases"][0]["cost"]["whole"]["tokens"] == 3 * 10**11


def test_without_a_price_nothing_is_said(run: RunSummary) -> None:
    plain = analysed(run)
    assert "$" not in printed(print_run, plain, 120)
    page = render(plain)
    assert "$ a run" not in page
    assert "10⁹ tokens" not in page
    (row, *_) = csv.DictReader(io.StringIO(to_csv(plain)))
    assert all(row[name] == "" for name in COST_COLUMNS)
    assert json.loads(to_json(plain))["cost"] == {"total_usd": None, "prices": []}


def test_why_a_given_price_is_not_used_is_said(run: RunSummary) -> None:
    refused = replace(analysed(run), cost=cost_of(run, Cost(usd_per_gpu_hour=2.0)))
    words = " ".join(printed(print_closing_table, refused, 100).split())
    assert "the price is a GPU's, and CPUs compute here" in words
    assert "$" not in words
