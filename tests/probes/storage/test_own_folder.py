"""Is nothing touched on a user's storage but what Broadgauge made?"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from broadgauge.probes.storage.own_folder import MARKER, NAME, own_folder
from broadgauge.probes.trial import RefusedError


def refused(storage: Path, needed_bytes: int = 100) -> str:
    with pytest.raises(RefusedError) as error, own_folder(storage, "rank0", needed_bytes):
        pass
    return str(error.value)


def test_a_folder_is_made_and_removed(tmp_path: Path) -> None:
    (tmp_path / "theirs.txt").write_text("kept")
    with own_folder(tmp_path, "rank0", 100) as first, own_folder(tmp_path, "rank1", 100) as second:
        (first / "a").write_text("a")
        (second / "below").mkdir()
        (second / "below" / "b").write_text("b")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.txt"]


def test_it_is_removed_after_an_error_too(tmp_path: Path) -> None:
    def fail() -> None:
        with own_folder(tmp_path, "rank0", 100) as folder:
            (folder / "a").write_text("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == []


def test_what_others_made_is_refused_and_kept(tmp_path: Path) -> None:
    theirs = tmp_path / NAME / "rank0" / "theirs.txt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("kept")
    assert "not empty, and Broadgauge did not make it" in refused(tmp_path)
    assert theirs.read_text() == "kept"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "rank0").symlink_to(theirs)
    assert "no folder that Broadgauge made" in refused(tmp_path)
    assert [path.name for path in theirs.iterdir()] == []


HOLD = """
import sys, time
from pathlib import Path
from broadgauge.probes.storage.own_folder import own_folder
with own_folder(Path(sys.argv[1]), "rank0", 100) as folder:
    (folder / "big").write_text("x")
    print("there", flush=True)
    time.sleep(600)
"""


def test_another_run_is_left_alone_and_what_a_killed_one_left_is_removed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"there\n"
            assert "another run works in" in refused(tmp_path)
            assert (tmp_path / NAME / "rank0" / "big").exists()
        finally:
            other.send_signal(signal.SIGKILL)
    with own_folder(tmp_path, "rank0", 100) as folder:
        assert [path.name for path in folder.iterdir()] == [MARKER]
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [("nowhere", "is not there"), ("file", "is no folder"), ("/proc", "nothing can be written")],
)
def test_a_storage_that_is_none_is_refused(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    assert reason in refused(tmp_path / path)


def test_a_storage_that_is_too_full_is_refused(tmp_path: Path) -> None:
    assert "GB free, and 1000000.00 GB are to be written" in refused(tmp_path, 10**15)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_storage_that_says_no_size_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizeless = SimpleNamespace(f_blocks=0, f_bavail=0, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: sizeless)
    with own_folder(tmp_path, "rank0", 10**15) as folder:
        assert folder.is_dir()


@pytest.mark.parametrize("times", [1, 3])
def test_a_rank_that_ends_between_takes_nothing_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It removes the folder that both share just before the other makes its own in it."""
    real, removed = Path.mkdir, []

    def mkdir(path: Path, *others: object, **named: object) -> None:
        if path.name == "rank0" and len(removed) < times:
            path.parent.rmdir()
            removed.append(path)
        real(path, *others, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with own_folder(tmp_path, "rank0", 100) as folder:
        assert folder.is_dir()
    assert len(removed) == times
    assert not list(tmp_path.iterdir())


def test_a_storage_that_goes_away_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mkdir(path: Path, **_: object) -> None:
        if path.name == "rank0":
            raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert "nothing can be written" in refused(tmp_path)
