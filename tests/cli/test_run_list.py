"""Are runs listed as they are, found by `last~N` and by their names' beginning, and removed?"""

import io
import json
import os
from pathlib import Path

import pytest
from tests.results.test_history import a_run

from broadgauge.cli.main import main
from broadgauge.report.terminal_run_list import show_age
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.run_list import RunStatus, list_runs, remove_run
from broadgauge.results.run_path import is_relative_to_last, run_path
from broadgauge.specs.errors import RunFolderError


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Three runs under runs/, newest first."""
    monkeypatch.chdir(tmp_path)
    folders = [a_run(Path("runs"), day) for day in range(3)]
    for at, folder in enumerate(folders):
        os.utime(folder / "plan.json", (1_700_000_000 + at, 1_700_000_000 + at))
    return folders[::-1]


def cut(folder: Path) -> None:
    """Leave its first record alone."""
    records = folder / "records.jsonl"
    records.write_bytes(records.read_bytes().splitlines(keepends=True)[0])


def test_last_counts_back(runs: list[Path]) -> None:
    for back, text in enumerate(("last", "last~1", "last~2")):
        assert run_path(text).resolve() == runs[back].resolve()
    assert run_path("last~0") == run_path("last")
    with pytest.raises(RunFolderError, match=r"no last~3: there are 3 runs under runs/"):
        run_path("last~3")


def test_a_name_is_known_by_its_beginning(runs: list[Path]) -> None:
    for folder in runs:
        assert run_path(folder.name).resolve() == folder.resolve()
        assert run_path(folder.name[:-1]).resolve() == folder.resolve()
    with pytest.raises(RunFolderError, match="3 runs begin with `tiny`") as raised:
        run_path("tiny")
    assert runs[0].name in str(raised.value.hint)
    assert run_path("nothing-like-it") == Path("nothing-like-it")


def test_a_folder_that_is_there_is_meant_first(runs: list[Path]) -> None:
    assert is_relative_to_last("last~1")
    Path("last~1").mkdir()
    assert run_path("last~1") == Path("last~1")
    assert not is_relative_to_last("last~1")
    assert run_path(str(runs[2])) == runs[2]


def test_what_became_of_a_run_is_said(runs: list[Path]) -> None:
    newest, middle, oldest = runs
    cut(middle)
    (oldest / "plan.json").write_text("{")
    os.utime(oldest / "plan.json", (1_600_000_000, 1_600_000_000))
    with RunFolder.open_for_resume(newest):
        held, *_ = list_runs(Path("runs"))
        with pytest.raises(RunFolderError, match="is being written"):
            remove_run(newest)
    first, second, third = list_runs(Path("runs"))
    assert (held.status, first.status) == (RunStatus.RUNNING, RunStatus.COMPLETE)
    assert first.num_stored == first.num_planned == first.num_ok > 1
    assert (second.status, second.num_stored) == (RunStatus.UNFINISHED, 1)
    assert (third.status, third.num_planned) == (RunStatus.UNREADABLE, 0)
    assert third.problem is not None
    assert first.size_bytes > second.size_bytes > 0


def test_the_list_is_printed_newest_first(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    cut(runs[1])
    assert main(["runs"]) == 0
    printed = capsys.readouterr().out
    places = [printed.index(folder.name) for folder in runs]
    assert places == sorted(places)
    for word in ("last~1", "complete", "unfinished", "3 runs"):
        assert word in printed
    assert main(["runs", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [Path(each["run"]).name for each in document["runs"]] == [path.name for path in runs]
    assert [each["status"] for each in document["runs"]] == ["complete", "unfinished", "complete"]


def test_a_run_is_removed_only_when_it_is_agreed(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))  # no terminal: it can't agree
    assert main(["runs", "--remove", "last"]) == 2
    assert "add --yes" in capsys.readouterr().err
    for answer, is_there in (("no\n", True), ("\n", True), ("", True), ("y\n", False)):
        stdin = io.StringIO(answer)
        monkeypatch.setattr(stdin, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdin", stdin)
        assert main(["runs", "--remove", "last"]) == 0
        assert runs[0].exists() is is_there
    assert [run.folder.name for run in list_runs(Path("runs"))] == [path.name for path in runs[1:]]


def test_a_mistyped_name_removes_nothing(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "--remove", runs[0].name, "nothing-like-it", "--yes"]) == 5
    assert "nothing-like-it does not exist" in capsys.readouterr().err
    assert all(folder.exists() for folder in runs)


def test_what_is_no_run_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "mine").write_text("kept")
    assert main(["runs", "--remove", str(tmp_path / "letters"), "--yes"]) == 5
    assert "is no run folder" in capsys.readouterr().err
    assert (tmp_path / "letters" / "mine").read_text() == "kept"
    with pytest.raises(RunFolderError, match="it was kept"):
        remove_run(tmp_path / "letters")


def test_a_link_to_a_run_takes_the_run_and_nothing_behind_links_in_it(runs: list[Path]) -> None:
    elsewhere = Path("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (runs[0] / "link").symlink_to(elsewhere.resolve())
    Path("alias").symlink_to(runs[0].resolve())
    with pytest.raises(RunFolderError, match="is a link"):
        remove_run(Path("alias"))
    assert main(["runs", "--remove", "alias", "--yes"]) == 0
    assert not runs[0].exists()
    assert (elsewhere / "kept").exists()


@pytest.mark.parametrize(
    ("age_s", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (7200, "2 h ago"),
        (86400, "1 day ago"),
        (86400 * 9.9, "9 days ago"),
    ],
)
def test_an_age_is_said_in_whole_units(age_s: float, words: str) -> None:
    assert show_age(age_s) == words
