"""Which of a node's ranks is named, when torchrun saw another one first?"""

from pathlib import Path

import pytest

from broadgauge.messages.tasks import MetricSource
from broadgauge.messages.vocabulary import ErrorKind
from broadgauge.probes.command_failure import describe_end
from broadgauge.probes.command_streams import CommandStreams

METRIC = MetricSource(name="step_s", regex=r"step (\d+)", comma=None, json_key=None, skip_first=0)
SEEN = "E x/torch/distributed/elastic/y.py:986] failed (exitcode: {}) local_rank: {} (pid: 9)"
LISTED = "  rank      : {} (local_rank: {})\n  exitcode  : {} (pid: 9)\n"
CRASHED = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 9, in step
    raise KeyError("labels")
KeyError: 'labels'
"""
PEER = CRASHED.replace("KeyError: 'labels'", "RuntimeError: Connection closed by peer [10.0.0.2]")
SEGFAULT = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f5b5bdc4b80 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/train.py", line 12 in step
"""


def end_of(folder: Path, errors: list[str], seen: tuple[int, int], listed: dict[int, int]):
    """What is told of ranks 2, 3, … that wrote these errors."""
    passed: list[bytes] = []
    ranks = range(2, 2 + len(errors))
    streams = CommandStreams((METRIC,), ranks, folder, passed.append)
    for local, text in enumerate(errors):
        rank_folder = folder / "none_x" / "attempt_0" / str(local)
        rank_folder.mkdir(parents=True)
        (rank_folder / "stderr.log").write_text(text)
        (rank_folder / "stdout.log").write_text("a step\n")
    code, local = seen
    summary = "".join(LISTED.format(local + 2, local, each) for local, each in listed.items())
    streams.take(f"{SEEN.format(code, local)}\n{summary}".encode())
    streams.finish()
    return describe_end("t", streams, 1, "/home/me")


def test_the_one_that_crashed_and_not_its_peer_that_was_seen_first(tmp_path: Path) -> None:
    failed = end_of(tmp_path, [PEER, CRASHED], (1, 0), {0: 1, 1: 1})
    assert (failed.rank, failed.frame) == (3, "train.py:9 in step")
    assert failed.message == "crashed at train.py:9 in step: KeyError: 'labels'"
    assert failed.last_lines == tuple(CRASHED.splitlines())


def test_a_full_disk_is_no_fault_of_the_script(tmp_path: Path) -> None:
    words = "OSError: [Errno 28] No space left on device: 'model.pt'"
    failed = end_of(tmp_path, [CRASHED.replace("KeyError: 'labels'", words)], (1, 0), {0: 1})
    assert failed.kind is ErrorKind.NO_SPACE
    assert failed.message == f"crashed at train.py:9 in step: {words}"


def test_its_words_count_also_where_torchrun_did_not_list_it(tmp_path: Path) -> None:
    assert end_of(tmp_path, [PEER, CRASHED], (1, 0), {0: 1}).rank == 3


@pytest.mark.parametrize("seen_first", [0, 1])
def test_of_two_that_crashed_alike_the_one_that_was_seen_first(
    seen_first: int, tmp_path: Path
) -> None:
    failed = end_of(tmp_path, [CRASHED, CRASHED], (1, seen_first), {0: 1, 1: 1})
    assert failed.rank == 2 + seen_first


def test_an_exit_without_a_word_before_a_peers_and_after_a_crash(tmp_path: Path) -> None:
    silent = end_of(tmp_path, [PEER, ""], (1, 0), {0: 1, 1: 5})
    assert silent.rank == 3
    assert silent.message == "the command ended with exit code 5; its last line: a step"


def test_one_that_torchrun_ended_is_not_blamed_for_its_silence(tmp_path: Path) -> None:
    failed = end_of(tmp_path, [PEER, ""], (1, 0), {0: 1})
    assert failed.rank == 2, "the cause is on another node, and this one says so"
    assert "Connection closed by peer" in failed.message


def test_a_fatal_signal_has_its_line_by_faulthandler(tmp_path: Path) -> None:
    failed = end_of(tmp_path, ["", SEGFAULT], (-11, 1), {1: -11})
    assert (failed.rank, failed.frame) == (3, "train.py:12 in step")
    assert "Segmentation fault" in failed.message


def test_a_signal_without_words_has_its_name(tmp_path: Path) -> None:
    failed = end_of(tmp_path, ["", ""], (-9, 1), {1: -9})
    assert failed.message == "the command ended by signal 9 (SIGKILL); its last line: a step"
