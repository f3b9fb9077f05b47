"""Is the run that the user means found, and what of it is said?"""

from pathlib import Path

import pytest
from tests.running.test_baseline import stored_run

from broadgauge.cli.main import main
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.run_path import run_path
from broadgauge.running.baseline import read_against
from broadgauge.specs.errors import RunFolderError


def test_the_last_run_is_that_of_the_folder_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here, there = stored_run(Path("runs"), tmp_path), stored_run(Path("D"), tmp_path)
    assert run_path("last").resolve() == here
    assert run_path("last", Path("D")).resolve() == there
    assert Path(read_against("last", ["local"], runs_folder=Path("D")).run.run).resolve() == there
    with pytest.raises(RunFolderError, match="no run under E/"):
        read_against("last", ["local"], runs_folder=Path("E"))


@pytest.mark.parametrize("command", ["--against", "--resume"])
def test_flags_look_for_the_last_run_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    experiment = [] if command == "--resume" else ["quickstart"]
    flags = [command, "last", "--runs-folder", str(tmp_path)]
    assert main(["run", *experiment, *flags]) == 5
    assert f"there is no run under {tmp_path}/" in capsys.readouterr().err


def test_a_baseline_that_is_not_finished_is_said(tmp_path: Path) -> None:
    path = stored_run(tmp_path, tmp_path)
    records = path / "records.jsonl"
    first, *_ = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(first)
    (note,) = read_against(str(path), ["local"]).notes
    assert note == "the baseline was not finished: 2 of its 3 trials are missing there"
    with RunFolder.open_for_resume(path):
        (note,) = read_against(str(path), ["local"]).notes
    assert "is being run at this moment" in note


@pytest.mark.parametrize("value", ["-3%", "-.5", "\u0663%"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_limit_that_is_none_is_named(
    capsys: pytest.CaptureFixture[str], value: str, joined: bool
) -> None:
    flags = [f"--fail-above={value}"] if joined else ["--fail-above", value]
    for command in (["run", "quickstart", "--against", "x"], ["compare", "x"]):
        assert main([*command, *flags]) == 2
        assert f"a slowdown is a share above 0, not `{value}`" in capsys.readouterr().err
