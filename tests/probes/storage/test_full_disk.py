"""Is a disk that fills up, a quota, or a disk that nobody may write to told as that? Is nothing of
ours left, and what is not ours kept?"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WAYS = 12
"""Of making files, of all phases."""


def made(repository: Path, unshare: str, kind: str, folder: Path) -> dict[str, Any]:
    program = [sys.executable, "-m", "tests.probes.storage.full_disk", kind, str(folder)]
    done = subprocess.run(
        ["unshare", unshare, *program],
        capture_output=True,
        text=True,
        cwd=repository,
        env=os.environ | {"MASTER_ADDR": "127.0.0.1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.namespaces
@pytest.mark.measuring
def test_a_disk_that_fills_up_while_files_are_made(tmp_path: Path, repository: Path) -> None:
    told = made(repository, "-rm", "tmpfs", tmp_path)
    kind, words = told["said"].pop("read-only")
    assert kind == "refused"
    assert "nothing can be written" in words
    assert "Read-only file system" in words
    assert len(told["said"]) == WAYS
    for way, (kind, words) in told["said"].items():
        assert kind == "no_space", (way, words)
        assert "No space left on device" in words, way
    assert told["left"] == ["theirs"]


@pytest.mark.btrfs
@pytest.mark.measuring
def test_a_quota_that_free_space_does_not_show(tmp_path: Path, repository: Path) -> None:
    """Btrfs limits root too."""
    told = made(repository, "-m", "btrfs", tmp_path)
    assert len(told["said"]) == WAYS
    for way, (kind, words) in told["said"].items():
        assert kind == "no_space", (way, words)
        assert "Disk quota exceeded" in words, way
    assert told["left"] == ["theirs"]
