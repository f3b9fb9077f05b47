"""Is the same said of the same records, unless the version of the analysis says otherwise?"""

import json

import pytest
from tests.analysis.golden import EXPECTED, RUNS, said_of

from broadgauge.analysis.model import ANALYSIS_VERSION


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.glob("schema-*/")))
def test_what_is_said_of_a_golden_folder(name: str) -> None:
    expected = json.loads((EXPECTED / f"{name}.json").read_text())
    how = "`python -m tests.analysis.golden` writes it; its docstring says what else changes"
    assert expected["analysis_version"] == ANALYSIS_VERSION, how
    assert said_of(name) == expected, f"raise ANALYSIS_VERSION; {how}"
