"""Are the copies of the rules made of the files as they are? Else: `make compiled`."""

import json
from pathlib import Path

import pytest

from broadgauge.doctor.log import loading
from broadgauge.doctor.log.compiling import compiled_text, write_copies
from broadgauge.doctor.log.loading import COMPILED, rule_files, rules_folder, shipped_rules
from broadgauge.doctor.log.rule import Rule

FILES = dict(rule_files())


def test_there_is_a_copy_of_each_file_and_no_other() -> None:
    names = {file.name for file in rules_folder().joinpath(COMPILED).iterdir()}
    assert names == {f"{name}.json" for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_the_copy_was_made_of_this_text(name: str) -> None:
    copy = rules_folder().joinpath(COMPILED, f"{name}.json").read_text(encoding="utf-8")
    assert copy == compiled_text(name, FILES[name]), "make compiled"


def test_rules_come_from_the_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_yaml(name: str, text: str) -> list[dict[str, object]]:
        raise AssertionError(f"{name}.yaml was parsed")

    monkeypatch.setattr(loading, "parsed", no_yaml)
    assert len(shipped_rules.__wrapped__()) == len(shipped_rules())


def test_a_copy_of_another_text_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = next(iter(FILES.items()))
    edited = text.replace("confidence: certain", "confidence: possible", 1)
    assert edited != text
    monkeypatch.setattr(loading, "rule_files", lambda: iter([(name, edited)]))
    rules: tuple[Rule, ...] = shipped_rules.__wrapped__()
    assert rules != tuple(Rule.model_validate(each) for each in loading.parsed(name, text))
    assert rules == tuple(Rule.model_validate(each) for each in loading.parsed(name, edited))


def test_copies_of_files_that_are_gone_go(tmp_path: Path) -> None:
    (tmp_path / "gone.json").write_text("{}", encoding="utf-8")
    write_copies(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(FILES)
    rules = [json.loads(path.read_text(encoding="utf-8"))["rules"] for path in tmp_path.iterdir()]
    assert sum(map(len, rules)) == len(shipped_rules())
