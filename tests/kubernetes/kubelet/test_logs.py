"""Proves log_files.py and log_reader.py: what is kept, what is lost, and what a follower gets."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.kubernetes.kubelet import log_reader
from tests.kubernetes.kubelet.log_files import MAX_LINE_BYTES, LogWriter, timestamp
from tests.kubernetes.kubelet.log_reader import LogQuery, last_lines, read_log

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def writer(folder: Path, max_bytes: int = 10 << 20, max_files: int = 5) -> LogWriter:
    opened = LogWriter(folder=folder, max_bytes=max_bytes, max_files=max_files)
    opened.open()
    return opened


def read(folder: Path, **query: object) -> str:
    return b"".join(read_log(folder, LogQuery(**query), lambda: True)).decode()  # type: ignore[arg-type]


def answers(*said: bool) -> Callable[[], bool]:
    """Is it over? These in turn, then yes."""
    left = [*said]
    return lambda: left.pop(0) if left else True


def test_lines_have_time_stream_and_mark(tmp_path: Path) -> None:
    log = writer(tmp_path)
    log.feed("stdout", b"one\ntw")
    log.feed("stderr", b"other\n")
    log.feed("stdout", b"o\nlast")
    for stream in ("stdout", "stderr"):
        log.finish(stream)
    lines = (tmp_path / "log").read_text().splitlines()
    pattern = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)")
    assert [pattern.fullmatch(line).groups() for line in lines] == [  # type: ignore[union-attr]
        ("stdout", "F", "one"),
        ("stderr", "F", "other"),
        ("stdout", "F", "two"),
        ("stdout", "P", "last"),
    ]
    assert read(tmp_path) == "one\nother\ntwo\nlast"


def test_a_time_has_nine_digits() -> None:
    """The example of the CRI's documentation, without its fraction's last digits lost."""
    assert timestamp(1_475_712_669_669_794_202) == b"2016-10-06T00:11:09.669794202Z"
    assert timestamp(1_475_712_669_000_000_007) == b"2016-10-06T00:11:09.000000007Z"


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_long_line_is_kept_in_parts_and_read_as_one(tmp_path: Path, pieces: int) -> None:
    log = writer(tmp_path)
    text = b"x" * (2 * MAX_LINE_BYTES + 5)
    step = -(-len(text) // pieces)
    for start in range(0, len(text), step):
        log.feed("stdout", text[start : start + step])
    log.feed("stdout", b"\nnext\n")
    marks = [line.split(b" ")[2] for line in (tmp_path / "log").read_bytes().splitlines()]
    assert marks == [b"P", b"P", b"F", b"F"]
    assert read(tmp_path) == text.decode() + "\nnext\n"
    assert read(tmp_path, tail_lines=2) == read(tmp_path)
    assert read(tmp_path, tail_lines=1) == "next\n"


def test_rotation_by_size_keeps_some_files_and_readers_see_the_last(tmp_path: Path) -> None:
    log = writer(tmp_path, max_bytes=1000, max_files=3)
    for number in range(100):
        log.feed("stdout", b"line %d\n" % number)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert all(0 < path.stat().st_size <= 1000 for path in files)
    seen = read(tmp_path).splitlines()
    assert seen[-1] == "line 99"
    assert 0 < len(seen) < 25


def test_a_follower_goes_on_in_the_next_file(tmp_path: Path) -> None:
    log = writer(tmp_path)
    log.feed("stdout", b"first\n")
    pieces = read_log(tmp_path, LogQuery(follow=True), answers(*repeat(False, 9)))
    assert next(pieces) == b"first\n"
    assert next(pieces) == b"", "nothing is new"
    log.feed("stdout", b"late\n")
    log.rotate()
    log.feed("stdout", b"second\n")
    assert b"".join(pieces) == b"late\nsecond\n"


def test_what_is_written_between_a_look_at_a_file_and_its_rotation_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = writer(tmp_path)
    log.feed("stdout", b"first\n")
    look, rotations = log_reader._newer, [True]

    def look_late(path: Path, file: BinaryIO) -> BinaryIO | None:
        if rotations:
            rotations.pop()
            log.feed("stdout", b"late\n")
            log.rotate()
            log.feed("stdout", b"second\n")
        return look(path, file)

    monkeypatch.setattr(log_reader, "_newer", look_late)
    pieces = read_log(tmp_path, LogQuery(follow=True), answers(*repeat(False, 5)))
    assert b"".join(pieces) == b"first\nlate\nsecond\n"


def test_a_follower_waits_for_the_first_file(tmp_path: Path) -> None:
    assert list(read_log(tmp_path, LogQuery(follow=True), answers(False, True))) == []
    assert read(tmp_path) == ""


def test_tail_since_and_limit(tmp_path: Path) -> None:
    lines = [f"2026-01-01T00:00:0{n}.500000000Z stdout F line {n}\n" for n in range(6)]
    (tmp_path / "log").write_text("".join(lines))
    assert read(tmp_path, tail_lines=0) == ""
    assert read(tmp_path, tail_lines=2) == "line 4\nline 5\n"
    assert read(tmp_path, tail_lines=99) == read(tmp_path)
    assert read(tmp_path, since="2026-01-01T00:00:04.5Z") == "line 4\nline 5\n"
    assert read(tmp_path, since="2026-01-01T00:00:04.500000001Z") == "line 5\n"
    assert read(tmp_path, since="2026-01-01T09:00:05+09:00") == "line 5\n"
    assert read(tmp_path, since="2025-12-31T19:00:05.25-05:00") == "line 5\n"
    assert read(tmp_path, limit_bytes=9) == "line 0\nli"
    stamped = read(tmp_path, tail_lines=1, has_timestamps=True)
    assert stamped == "2026-01-01T00:00:05.500000000Z line 5\n"
    assert last_lines(tmp_path, num_lines=3, most_bytes=10) == " 4\nline 5\n"


def test_parameters_of_a_request() -> None:
    said = {"follow": "true", "tailLines": "5", "sinceSeconds": "60", "limitBytes": "7",
            "timestamps": "true"}  # fmt: skip
    assert LogQuery.parse(said, NOW) == LogQuery(
        follow=True,
        tail_lines=5,
        since="2025-12-31T23:59:00+00:00",
        limit_bytes=7,
        has_timestamps=True,
    )
    assert LogQuery.parse({"sinceTime": "2026-01-01T00:00:00Z"}, NOW).since is not None
    assert LogQuery.parse({}, NOW) == LogQuery()
