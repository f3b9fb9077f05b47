"""A rank that fails on a full disk: who says so?"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from broadgauge.agent import host_logs
from broadgauge.agent.host_logs import LogTeller, failed_rank, is_full, no_space
from broadgauge.messages.agent import Ended, LogText, RankExited, RankSaid


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
    message = no_space("/scratch/broadgauge-abc/logs")
    assert message["type"] == "failed"
    assert message["message"] == f"{os.uname().nodename}: /scratch: No space left on device"


def told(texts: Iterator[LogText]) -> dict[str, tuple[str, int]]:
    return {each.name: (each.text, each.left_out_bytes) for each in texts}


def test_what_nccl_says_is_told_after_a_trial_and_the_rest_at_the_end(tmp_path: Path) -> None:
    nccl, output = tmp_path / "b0.l0.rank0.nccl.log", tmp_path / "b0.l0.rank0.log"
    nccl.write_text("one\ntwo\ncut of")
    output.write_text("step 1\n")
    teller = LogTeller(tmp_path)
    assert told(teller.of_nccl()) == {nccl.name: ("one\ntwo\n", 0)}
    assert told(teller.of_nccl()) == {}
    nccl.write_text("one\ntwo\ncut off\nfour\n")
    assert told(teller.of_nccl()) == {nccl.name: ("cut off\nfour\n", 0)}
    with nccl.open("a") as file:
        file.write("last")
    assert told(teller.rest()) == {nccl.name: ("last", 0), output.name: ("step 1\n", 0)}
    assert list(tmp_path.iterdir()) == []


def test_of_a_long_log_the_beginning_is_told_and_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_logs, "MAX_LOG_TEXT_BYTES", 10)
    nccl = tmp_path / "b0.l0.rank0.nccl.1234.log"
    nccl.write_text("0123\n5678\n" * 5)
    teller = LogTeller(tmp_path)
    assert told(teller.of_nccl()) == {nccl.name: ("0123\n5678\n", 0)}
    assert told(teller.rest()) == {nccl.name: ("0123\n5678\n", 30)}


def test_the_next_launch_begins_anew(tmp_path: Path) -> None:
    teller = LogTeller(tmp_path)
    for text in ("first\n", "second, which is longer\n"):
        (tmp_path / "x.nccl.log").write_text(text)
        assert told(teller.of_nccl()) == {"x.nccl.log": (text, 0)}
        assert told(teller.rest()) == {}
