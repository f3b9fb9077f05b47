"""docs/validation.md is what `broadgauge validate` prints of the published tables."""

from pathlib import Path

import pytest
from tests.predict.making_articles import articles_found

from broadgauge.predict.scoring.peers import read_times
from broadgauge.predict.tables.table import read_table
from broadgauge.report.validation_page import Page, uncalibrated_sections, validation_page

HINT = (
    "in references/: broadgauge validate measured-training.csv --markdown "
    "--peer Calculon=calculon-step-times.csv > ../docs/validation.md"
)


def test_what_needs_no_calibration_is_current(repository: Path) -> None:
    references = repository / "references"
    table = read_table((references / "measured-training.csv").read_bytes(), "measured-training.csv")
    times = read_times((references / "calculon-step-times.csv").read_bytes(), "times")
    sections = uncalibrated_sections(table, {"Calculon": times}, articles_found())
    stored = (repository / "docs" / "validation.md").read_text(encoding="utf-8")
    for title, text in sections.items():
        assert Page(sections={title: text}).markdown in stored, f"{title}: {HINT}"


@pytest.mark.slow
def test_all_of_it_is_current(repository: Path) -> None:
    references = repository / "references"
    table = read_table((references / "measured-training.csv").read_bytes(), "measured-training.csv")
    times = read_times((references / "calculon-step-times.csv").read_bytes(), "times")
    page = validation_page(table, {"Calculon": times}, articles_found())
    stored = (repository / "docs" / "validation.md").read_text(encoding="utf-8")
    assert page.markdown == stored, HINT
