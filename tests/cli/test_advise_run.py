"""Does `broadgauge advise RUN` choose by what a run measured, as it does by a file?"""

import json
from pathlib import Path

import pytest
from tests.report.sample_storage import sample_folder

from broadgauge.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_folder(tmp_path_factory.mktemp("storages"), launches=2)


def test_a_run_and_the_file_that_is_kept_of_it_give_one_choice(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "table.yaml"
    words = ["--set", "job.saves=24", "--json"]
    assert main(["advise", str(folder), *words, "--write", str(kept)]) == 0
    of_run = json.loads(capsys.readouterr().out)
    assert main(["advise", str(kept), "--json"]) == 0
    of_file = json.loads(capsys.readouterr().out)
    assert of_run == of_file
    assert of_run["chosen"]["phases"]["checkpoint_saving"]["times"] == 24
    assert main(["advise", str(folder), "--write", str(kept)]) != 0
    assert "is there already" in capsys.readouterr().err


def test_the_terminal_says_what_is_not_proven(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", str(folder)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "batch loading on cached is of a cache whose state can't be proven" in text
    assert "Checkpoint interval" in text


def test_a_folder_that_is_no_run_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", str(tmp_path)]) != 0
    assert "plan.json" in capsys.readouterr().err
