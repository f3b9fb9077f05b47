"""A line that could not be stored takes no stored one along."""

import errno
import os
from pathlib import Path

import pytest

from broadgauge.results.folder.records_file import RecordsFile
from broadgauge.specs.errors import RunFolderError


def test_a_disk_that_is_full_once_keeps_every_line_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(_: int) -> None:
        raise OSError(errno.ENOSPC, "is full")

    path = tmp_path / "records.jsonl"
    file = RecordsFile(path, 0)
    file.append(b"first\n")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "fsync", is_full)
        with pytest.raises(RunFolderError, match="No space left on device"):
            file.append(b"second\n")
    file.append(b"third\n")
    file.close()
    assert path.read_bytes() == b"first\nthird\n"
