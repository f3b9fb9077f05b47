"""A rank that fails on a full disk: who says so?"""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from broadgauge.agent.host_logs import failed_rank, is_full, no_space
from broadgauge.messages.agent import Ended, RankExited, RankSaid


def test_only_a_failure_asks_for_the_disk() -> None:
    assert failed_rank(RankExited(rank=3, exit_code=1, signal=None, was_told_to=False)) == 3
    assert failed_rank(RankSaid(rank=2, message={"type": "failed"})) == 2
    assert failed_rank(RankSaid(rank=2, message={"type": "block"})) is None
    assert failed_rank(RankExited(rank=3, exit_code=0, signal=None, was_told_to=True)) is None
    assert failed_rank(Ended()) is None


@pytest.mark.parametrize(("free_pages", "full"), [(0, True), (15, True), (16, False)])
def test_less_than_a_few_pages_is_full(
    monkeypatch: pytest.MonkeyPatch, free_pages: int, full: bool
) -> None:
    space = SimpleNamespace(f_bavail=free_pages, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: space)
    assert is_full("anywhere") is full


def test_a_folder_that_is_gone_is_not_full(tmp_path: Path) -> None:
    assert not is_full(str(tmp_path / "gone"))


def test_host_and_disk_are_named() -> None:
    told = no_space("/scratch/broadgauge-abc/logs")
    assert told["type"] == "failed"
    assert told["message"] == f"{os.uname().nodename}: /scratch: No space left on device"
