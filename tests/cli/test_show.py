"""Does `show --json` print what is stored, and nothing else?"""

import json
import shutil
from pathlib import Path

import pytest

from broadgauge.cli.main import main

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"


def test_json_is_the_stored_analysis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(GOLDEN, tmp_path / "run"))
    assert main(["show", str(run), "--json"]) == 0
    first = capsys.readouterr().out
    assert first == (run / "analysis.json").read_text()
    assert {case["verdict"]["bound"] for case in json.loads(first)["cases"]} >= {"compute-bound"}
    assert main(["show", str(run), "--json"]) == 0
    assert capsys.readouterr().out == first


def test_report_and_export_keep_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["report"], ["export", "--format", "csv"], ["show"]):
        run = Path(shutil.copytree(GOLDEN, tmp_path / command[0]))
        assert main([command[0], str(run), *command[1:]]) == 0
        assert (run / "analysis.json").is_file(), command
    capsys.readouterr()
