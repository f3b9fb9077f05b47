"""Proves cli/output.py: a file is whole or not there, and only files are ever replaced."""

import os
import stat
import threading
from pathlib import Path

import pytest

from broadgauge.cli.output import write_file
from broadgauge.specs.errors import InputError


def test_a_file_is_replaced_whole_and_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "target.csv"]


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "text")
    reader.join(timeout=10)
    assert read == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["no/such/folder/x.csv", "x" * 300, ".", "a\0b"])
def test_what_can_not_be_written_is_told_in_words(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="can't be written"):
        write_file(tmp_path / name, "text")
    assert list(tmp_path.iterdir()) == []
