"""Are runs listed as they are, found by `last~N` and by their names' beginning, and removed?"""

import errno
import io
import json
import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from tests.results.test_history import a_run

from broadgauge.cli.main import main
from broadgauge.report.terminal.run_list import print_run_list, show_age
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.run_list import ListedRun, RunStatus, list_runs, look_at, remove_run
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


def test_a_link_to_a_run_is_kept_with_the_run_behind_it(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = runs[0].rename("elsewhere").resolve()
    (Path("runs") / "alias").symlink_to(elsewhere)
    for name in ("alias", "runs/alias", "runs/alias/", "last"):
        assert main(["runs", "--remove", runs[1].name, name, "--yes"]) == 5, name
        assert "is a link, and was kept" in capsys.readouterr().err
    assert elsewhere.is_dir()
    assert runs[1].is_dir()


def test_nothing_behind_links_in_a_run_is_removed(runs: list[Path]) -> None:
    elsewhere = Path("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (runs[0] / "link").symlink_to(elsewhere.resolve())
    Path("alias").symlink_to(runs[0].resolve())
    with pytest.raises(RunFolderError, match="is a link"):
        remove_run(Path("alias"))
    assert main(["runs", "--remove", str(runs[0]), "--yes"]) == 0
    assert not runs[0].exists()
    assert (elsewhere / "kept").exists()


def test_a_run_that_can_not_be_removed_whole_is_kept_whole(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = runs[0] / "series"
    inner.mkdir(exist_ok=True)
    for locked in (Path("runs"), runs[0], inner):

        def may(path: Path, _mode: int, locked: Path = locked) -> bool:
            return Path(path).resolve() != locked.resolve()

        monkeypatch.setattr("os.access", may)
        with pytest.raises(RunFolderError, match=r"kept: .* may not be changed"):
            remove_run(runs[0])
        assert (runs[0] / "plan.json").exists()
        assert inner.exists()


@pytest.mark.parametrize(
    "text", ["last~", "last~-1", "last~x", "last~1.5", "last~\u0663", "", "a\0b"]
)
def test_what_can_name_no_run_is_told_with_what_can(text: str, runs: list[Path]) -> None:
    assert runs
    with pytest.raises(RunFolderError) as raised:
        run_path(text)
    assert "last~1" in str(raised.value.hint)


def test_a_run_that_goes_while_runs_are_listed_is_left_out(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(folder: Path) -> ListedRun:
        if folder.name == runs[1].name:
            shutil.rmtree(runs[1], ignore_errors=True)
        return look_at(folder)

    monkeypatch.setattr("broadgauge.results.run_list.look_at", look)
    assert [each.folder.name for each in list_runs(Path("runs"))] == [runs[0].name, runs[2].name]


def test_a_runs_folder_that_can_not_be_read_is_not_said_to_be_empty(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runs

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("os.scandir", refuse)
    monkeypatch.setattr("os.listdir", refuse)
    for ask in (lambda: list_runs(Path("runs")), lambda: run_path("last"), lambda: run_path("x")):
        with pytest.raises(RunFolderError, match="can't read runs: Permission denied"):
            ask()


def test_series_that_may_not_be_looked_at_are_told_without_a_traceback(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path) -> bool:
        if "series" in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied")
        return path.exists() and not path.is_dir()

    records = runs[0] / "records.jsonl"
    first, *others = records.read_text().splitlines()
    changed = json.loads(first) | {"series": {"step_time_s": "series/x.npy"}}
    records.write_text("\n".join([json.dumps(changed), *others, ""]))
    monkeypatch.setattr(Path, "is_file", refuse)
    assert main(["show", str(runs[0])]) == 5
    assert "series: Permission denied" in capsys.readouterr().err


def test_a_plan_without_a_case_is_shown(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = runs[0] / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"cases": [], "launches": []}))
    (runs[0] / "records.jsonl").write_text("")
    assert main(["show", str(runs[0])]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_a_dictionary_of_columns_for_a_file_needs_its_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "columns"
    assert main(["export", "--describe", "--output", str(target)]) == 2
    assert "--format csv, json or markdown" in capsys.readouterr().err
    assert main(["export", "--describe", "--output", str(target), "--format", "markdown"]) == 0
    assert target.read_text().startswith("#")


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


def test_a_name_of_a_usual_length_stands_in_a_table_of_80_columns() -> None:
    run = ListedRun(
        folder=Path("runs/mlp-ladder-20261123T054411Z"),
        started_unix_s=0.0,
        status=RunStatus.UNFINISHED,
        num_planned=10,
        num_stored=10,
        num_ok=8,
        num_failed=2,
        size_bytes=719_000,
    )
    out = io.StringIO()
    print_run_list([run], 600.0, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["run", "status", "trials", "size", "began"]
    assert lines[2].split()[1:3] == ["last", "unfinished"]
    assert "2 failed" in lines[3]
