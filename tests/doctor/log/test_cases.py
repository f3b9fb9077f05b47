"""Is what users met called by its name: severity, exit code, cause and fix, and nothing false?

Logs and table: cases/, rewritten from public problems.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from broadgauge.cli.main import main
from broadgauge.specs.text.yaml_source import parse_yaml

CASES = Path(__file__).parent / "cases"
EXPECTED: dict[str, dict[str, Any]] = parse_yaml(
    (CASES / "expected.yaml").read_text(encoding="utf-8"), "expected.yaml"
).data["cases"]


def words_of(finding: dict[str, Any]) -> str:
    parts = (finding["symptom"], finding["cause"], finding["fix"])
    return " ".join(filter(None, parts)).casefold()


def says(finding: dict[str, Any], groups: list[list[str]]) -> bool:
    """Of each group one of its words."""
    told = words_of(finding)
    return all(any(str(word).casefold() in told for word in group) for group in groups)


def test_each_log_has_its_row() -> None:
    assert sorted(path.stem for path in CASES.glob("*.log")) == sorted(EXPECTED)
    assert len(EXPECTED) >= 40


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_case(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = EXPECTED[name]
    ended = main(["doctor", "--log", str(CASES / f"{name}.log"), "--json"])
    printed = capsys.readouterr().out
    document = json.loads(printed)
    found = [each for each in document["findings"] if each["severity"] in expected["severities"]]
    assert ended in expected["exit"]
    assert not expected["says"] or any(says(each, expected["says"]) for each in found), found
    for word in expected.get("must_not_say", ()):
        assert word.casefold() not in printed.casefold()
    for question, state in expected.get("first_line", {}).items():
        assert document["answers"][question]["state"] == state
