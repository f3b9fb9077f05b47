"""Does what docs/catalog.md shows pass the check that the page tells its readers to run?"""

import re
from pathlib import Path

import pytest

from broadgauge.cli.main import main

TEXT = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 2


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_is_an_entry_without_a_problem(
    snippet: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(snippet)
    assert main(["catalog", "check", str(file)]) == 0, capsys.readouterr().out
