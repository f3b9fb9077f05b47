"""docs/validation.md is what `broadgauge validate` prints of the published tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.predict.making_articles import articles_found

from broadgauge.predict.scoring.peers import read_times
from broadgauge.predict.tables.table import MeasuredTable, read_table
from broadgauge.report import validation_page
from broadgauge.report.validation_page import Page, uncalibrated_sections

ROOT = Path(__file__).parents[2]

HINT = (
    "in references/: broadgauge validate measured-training.csv --markdown "
    "--peer Calculon=calculon-step-times.csv > ../docs/validation.md"
)


@dataclass(frozen=True)
class Published:
    """What the page is made from, with the part that needs no calibration."""

    table: MeasuredTable
    times: Mapping[str, Mapping[str, float]]
    quick: dict[str, str]


@pytest.fixture(scope="module")
def published() -> Published:
    references = ROOT / "references"
    table = read_table((references / "measured-training.csv").read_bytes(), "measured-training.csv")
    times = {"Calculon": read_times((references / "calculon-step-times.csv").read_bytes(), "times")}
    return Published(table, times, uncalibrated_sections(table, times, articles_found()))


@pytest.fixture
def stored() -> str:
    return (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")


def test_what_needs_no_calibration_is_current(stored: str, published: Published) -> None:
    for title, text in published.quick.items():
        assert Page(sections={title: text}).markdown in stored, f"{title}: {HINT}"


@pytest.mark.slow
def test_all_of_it_is_current(
    stored: str, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the quick part as it was found above."""
    monkeypatch.setattr(validation_page, "uncalibrated_sections", lambda *_: dict(published.quick))
    page = validation_page.validation_page(published.table, published.times, articles_found())
    assert page.markdown == stored, HINT
