"""What is told of a leader whose pod is gone, from the files that it kept on a volume?"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.timeouts import HANG_S

from broadgauge.agent import bundle
from broadgauge.leader.kept_events import next_file, read_kept
from broadgauge.leader.spool import Spool
from broadgauge.messages.frames import FrameReader
from broadgauge.messages.leader import LEADER_EVENT, LeaderHello, Spooled, TrialBegins


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zip") / "broadgauge.zip"
    path.write_bytes(bundle.build())
    return path


def keep(folder: Path, num_events: int, generation: int = 0) -> Path:
    path = next_file(folder)
    spool = Spool(path)
    for number in range(num_events):
        spool.append(generation, TrialBegins(trial_id=f"t{number}", unix_s=0.0))
    spool.close()
    return path


def told(archive: Path, *arguments: object) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, str(archive), "kept-events", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=HANG_S, check=False)


def heard(output: bytes) -> tuple[LeaderHello, list[int]]:
    """The last hello, and the events; the first hello says what is known before them."""
    first, *rest, last = (LEADER_EVENT(each.message) for each in FrameReader().feed(output)[0])
    assert isinstance(first, LeaderHello)
    assert isinstance(last, LeaderHello)
    numbers = [each.number for each in rest if isinstance(each, Spooled)]
    assert first.next_number == (numbers[0] if numbers else last.next_number)
    return last, numbers


@pytest.mark.parametrize("after", [-1, 0, 4, 9, 99])
def test_events_after_one_are_told_as_a_leader_would(
    tmp_path: Path, archive: Path, after: int
) -> None:
    keep(tmp_path / "results", 10, generation=3)
    ended = told(archive, tmp_path / "results", after)
    hello, numbers = heard(ended.stdout)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (hello.generation, hello.next_number) == (3, 10)
    assert numbers == list(range(after + 1, 10))


def test_the_newest_leaders_are_told_and_no_file_is_written_twice(
    tmp_path: Path, archive: Path
) -> None:
    names = [keep(tmp_path / "results", number).name for number in (5, 3)]
    assert names == ["events-0", "events-1"]
    assert heard(told(archive, tmp_path / "results", -1).stdout)[1] == [0, 1, 2]


@pytest.mark.parametrize("num_cut_bytes", [1, 40, 200])
def test_a_file_whose_end_was_lost_is_told_up_to_there(
    tmp_path: Path, archive: Path, num_cut_bytes: int
) -> None:
    path = keep(tmp_path, 10)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - num_cut_bytes])
    hello, numbers = heard(told(archive, tmp_path, -1).stdout)
    assert 7 < hello.next_number < 10
    assert numbers == list(range(hello.next_number))


def test_nothing_is_told_beyond_what_is_missing(tmp_path: Path, archive: Path) -> None:
    path = keep(tmp_path, 10)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4] + lines[5:]))
    assert [each.number for each in read_kept(path)] == [0, 1, 2, 3]
    hello, numbers = heard(told(archive, tmp_path, -1).stdout)
    assert (hello.next_number, numbers) == (4, [0, 1, 2, 3])


def test_a_leader_that_kept_nothing_yet_has_no_jobs(tmp_path: Path, archive: Path) -> None:
    keep(tmp_path, 0)
    hello, numbers = heard(told(archive, tmp_path, -1).stdout)
    assert (hello.generation, hello.next_number, numbers) == (-1, 0, [])


@pytest.mark.parametrize("folder", ["", "nothing/here"])
def test_where_no_leader_has_kept_anything_that_is_what_is_told(
    tmp_path: Path, archive: Path, folder: str
) -> None:
    ended = told(archive, tmp_path / folder, -1)
    hello, numbers = heard(ended.stdout)
    assert (ended.returncode, hello.generation, hello.next_number, numbers) == (0, -1, 0, [])
    assert "no leader has kept anything there" in ended.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "FOLDER AFTER"),
        (("x", "y"), "FOLDER AFTER"),
        (("file", "-1"), "file: Not a directory"),
    ],
)
def test_what_can_not_be_told_is_said_in_a_line(
    tmp_path: Path, archive: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "file").touch()
    given = [str(tmp_path / each) if each == "file" else each for each in arguments]
    ended = told(archive, *given)
    assert ended.returncode != 0
    assert ended.stdout == b""
    assert ended.stderr.decode().count("\n") == 1
    assert words in ended.stderr.decode()
