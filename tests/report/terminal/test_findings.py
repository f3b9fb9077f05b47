"""Are findings printed with each of their parts named, and whole where they are told short?"""

import io
from pathlib import Path

import pytest
from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.terminal.findings import print_run_findings
from broadgauge.results.summary import summarise_stored


@pytest.fixture
def shown_run(repository: Path) -> AnalysedRun:
    return analysed(summarise_stored(repository / "tests/results/golden/schema-1"))


def test_each_part_of_a_finding_is_named(shown_run: AnalysedRun) -> None:
    stream = io.StringIO()
    print_run_findings(shown_run.analysis, Console(file=stream, width=120))
    _, _, _, symptom, *lines = (line.strip() for line in stream.getvalue().splitlines())
    titles = [line.split("  ")[0] for line in lines[:4]]
    assert titles == ["evidence", "cause", "fix", "where"]
    assert symptom == "warning  a symptom"
    assert lines[0].endswith("1 of 2")
    assert lines[1].endswith("a cause")
    assert lines[2].endswith("a fix")
    assert lines[3].startswith("where       22 trials: train 1x1 one node, ")
