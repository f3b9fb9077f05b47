"""docs/validation.md is what `broadgauge validate` prints of the published tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.predict.making_articles import articles_found

from broadgauge.predict.articles.scores import ArticleScores
from broadgauge.predict.scoring.peers import read_times
from broadgauge.predict.scoring.validation import Validation, validate
from broadgauge.predict.tables.table import MeasuredTable, read_table
from broadgauge.report.validation.page import (
    Page,
    calibrated_sheets,
    uncalibrated_sections,
    validation_page,
)

ROOT = Path(__file__).parents[2]

HINT = (
    "in references/: broadgauge validate measured-training.csv --markdown "
    "--peer Calculon=calculon-step-times.csv > ../docs/validation.md"
)


@dataclass(frozen=True)
class Published:
    """What the page is made from."""

    table: MeasuredTable
    plain: Validation
    times: Mapping[str, Mapping[str, float]]
    found: ArticleScores


@pytest.fixture(scope="module")
def published() -> Published:
    references = ROOT / "references"
    table = read_table((references / "measured-training.csv").read_bytes(), "measured-training.csv")
    times = {"Calculon": read_times((references / "calculon-step-times.csv").read_bytes(), "times")}
    return Published(table, validate(table), times, articles_found())


@pytest.fixture
def stored() -> str:
    return (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")


def test_what_needs_no_calibration_is_current(stored: str, published: Published) -> None:
    quick = uncalibrated_sections(published.plain, published.times, published.found)
    for title, text in quick.items():
        assert Page(sections={title: text}).markdown in stored, f"{title}: {HINT}"


@pytest.mark.thorough
def test_all_of_it_is_current(stored: str, published: Published) -> None:
    sheets = calibrated_sheets(published.table, published.plain)
    page = validation_page(published.table, sheets, published.times, published.found)
    assert page.markdown == stored, HINT
