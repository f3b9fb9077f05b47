"""docs/doctor-rules.md: its example runs and says what the page says; its tables are current."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from broadgauge.cli.main import main
from broadgauge.doctor.log.rule import FindingText, Rule, Wording


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "docs" / "doctor-rules.md").read_text(encoding="utf-8")


@pytest.fixture
def example(text: str, tmp_path: Path) -> Path:
    (rules,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    log, _ = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "site.yaml").write_text(rules, encoding="utf-8")
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    return tmp_path


def found(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, str]]]:
    log, rules = str(folder / "train.log"), str(folder / "site.yaml")
    code = main(["doctor", "--log", log, "--rules", rules, "--json"])
    return code, json.loads(capsys.readouterr().out)["findings"]


def test_the_example_says_what_the_page_says(
    text: str, example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (finding,) = found(example, capsys)
    assert code == 9
    assert f"{finding['severity']}  {finding['symptom']}\n" in text


def test_without_its_cause_the_consequence_is_told(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = example / "train.log"
    log.write_text("\n".join(log.read_text(encoding="utf-8").splitlines()[1:]), encoding="utf-8")
    code, (finding,) = found(example, capsys)
    assert code == 8
    assert finding["symptom"] == "ranks 3 and 7 waited for data"


def test_a_mistake_names_its_place(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = example / "site.yaml"
    broken = rules.read_text(encoding="utf-8").replace("severity: warning", "severity: bad")
    rules.write_text(broken, encoding="utf-8")
    assert main(["doctor", "--log", str(example / "train.log"), "--rules", str(rules)]) == 2
    assert "rules[1].finding" in capsys.readouterr().err


def test_every_field_is_explained(text: str) -> None:
    table = text.split("## What the fields mean")[1].split("\n## ", maxsplit=1)[0]
    fields = {*Rule.model_fields, *Wording.model_fields, *FindingText.model_fields} - {"note"}
    named = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`[^`]+`", table))))
    assert fields <= named


def test_the_tables_are_current(text: str, repository: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "doctor_rules", repository / "scripts" / "doctor_rules.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.page() == text, "python scripts/doctor_rules.py"
