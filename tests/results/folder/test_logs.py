"""Are the ranks' lines passed on whole, once, in order, and harmlessly, also while they come?"""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.making import a_plan, make_folder, run_in
from tests.timeouts import HANG_S

from broadgauge.cli.main import main
from broadgauge.results.folder.lock import LOCK_FILE, FolderLock, is_being_written
from broadgauge.results.folder.logs import LONGEST_LINE_BYTES, Line, find_logs, follow, harmless
from broadgauge.specs.errors import ExitCode
from broadgauge.specs.plan import Plan

PLAN = a_plan(cluster={"shapes": ["1x1", "2x1"]}, launches=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = make_folder(tmp_path, PLAN)
    made.close()
    return made.path


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / "logs" / name
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def order(plan: Plan) -> list[str]:
    return [launch.launch_id for launch in plan.launches]


def test_logs_are_found_in_the_order_the_launches_ran(folder: Path) -> None:
    assert order(PLAN) == ["b0.l0", "b0.l1", "b1.l1", "b1.l0"]
    for name in (
        "b1.l0.rank0.log",
        "b0.l1.rank10.log",
        "b0.l1.rank2.log",
        "b0.l1r1.rank0.log",
        "b1.l1.rank0.log",
        "b0.l1.rank0.nccl.123.log",
        "b7.l0.rank0.log",
        "notes.txt",
    ):
        write(folder, name, "x\n")
    (folder / "logs" / "b0.l1.rank0.torchrun").mkdir()
    found = [(log.launch_id, log.rank) for log in find_logs(folder, PLAN)]
    assert found == [("b0.l1", 2), ("b0.l1", 10), ("b0.l1r1", 0), ("b1.l1", 0), ("b1.l0", 0)]


class Steps:
    """A run that writes something each time it is waited for, and then ends."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.left = list(steps)

    def is_running(self) -> bool:
        return bool(self.left)

    def wait(self) -> None:
        self.left.pop(0)()


def texts(lines: list[Line]) -> list[tuple[str, int, str]]:
    return [(line.log.launch_id, line.log.rank, line.text) for line in lines]


def test_a_live_run_is_followed_across_launches_to_its_last_word(folder: Path) -> None:
    write(folder, "b0.l0.rank0.log", "one\ntw")
    steps = Steps(
        lambda: write(folder, "b0.l0.rank0.log", "o\n"),
        lambda: write(folder, "b0.l1.rank1.log", "first of rank 1\n"),
        lambda: (
            write(folder, "b0.l1.rank0.log", "a\n"),
            write(folder, "b0.l0.rank0.log", "cut off"),
        ),
        lambda: write(folder, "b0.l1.rank1.log", "no end"),
    )
    lines = list(follow(lambda: find_logs(folder, PLAN), steps.is_running, steps.wait))
    assert texts(lines) == [
        ("b0.l0", 0, "one"),
        ("b0.l0", 0, "two"),
        ("b0.l1", 1, "first of rank 1"),
        ("b0.l0", 0, "cut off"),
        ("b0.l1", 0, "a"),
        ("b0.l1", 1, "no end"),
    ]


def test_what_a_run_wrote_just_before_its_end_is_not_missed(folder: Path) -> None:
    def is_running() -> bool:
        write(folder, "b0.l1.rank0.log", "a launch that began and ended since we looked\n")
        return False

    write(folder, "b0.l0.rank0.log", "x\n")
    lines = list(follow(lambda: find_logs(folder, PLAN), is_running, lambda: None))
    assert [line.log.launch_id for line in lines] == ["b0.l0", "b0.l1"]


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_however_the_bytes_arrive_each_line_comes_once(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / "logs").mkdir()
    write(folder, "b0.l0.rank0.log", b"")
    steps = Steps(
        *(lambda piece=piece: write(folder, "b0.l0.rank0.log", piece) for piece in pieces)
    )
    lines = list(follow(lambda: find_logs(folder, PLAN), steps.is_running, steps.wait))
    whole = b"".join(pieces).split(b"\n")
    whole = whole[:-1] if whole[-1] == b"" else whole
    assert [line.text for line in lines] == [
        each.removesuffix(b"\r").decode(errors="replace") for each in whole
    ]


def test_a_line_without_an_end_is_passed_on_in_pieces(folder: Path) -> None:
    write(folder, "b0.l0.rank0.log", b"x" * (2 * LONGEST_LINE_BYTES + 5))
    steps = Steps()
    lines = list(follow(lambda: find_logs(folder, PLAN), steps.is_running, steps.wait))
    assert [len(line.text) for line in lines] == [LONGEST_LINE_BYTES] * 2 + [5]


@given(st.text())
def test_nothing_of_a_line_moves_a_terminal(text: str) -> None:
    shown = harmless(text)
    assert all(each.isprintable() or each == "\t" for each in shown)
    if text.isprintable():
        assert shown == text


def test_an_escape_sequence_is_shown_as_text() -> None:
    assert harmless("\x1b[31mred\x1b]0;title\x07") == r"\x1b[31mred\x1b]0;title\x07"
    assert harmless(" 10 %\r 20 %\r100 %") == "100 %"
    assert harmless("\u202egnp.exe") == r"\u202egnp.exe"


def test_a_run_is_being_written_while_its_lock_is_held(folder: Path) -> None:
    assert not is_being_written(folder)
    with (folder / LOCK_FILE).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_being_written(folder)
    assert not is_being_written(folder)
    assert not is_being_written(folder / "nowhere")


def test_the_command_prints_the_newest_launch_or_the_one_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, "b0.l0.rank0.log", "old\n")
    write(folder, "b0.l1.rank0.log", "zero\n")
    write(folder, "b0.l1.rank1.log", "one\x1b[1m\n")
    run = str(folder)
    assert main(["logs", run]) == 0
    out, err = capsys.readouterr()
    assert out == "b0.l1.rank0 | zero\nb0.l1.rank1 | one\x1b[1m\n"
    assert err.startswith("launch     b0.l1: ")
    assert main(["logs", run, "--rank", "1"]) == 0
    assert capsys.readouterr().out == "one\x1b[1m\n"
    assert main(["logs", run, "--launch", "b0.l0"]) == 0
    assert capsys.readouterr().out == "b0.l0.rank0 | old\n"
    assert main(["logs", run, "-f"]) == 0
    assert capsys.readouterr().out == "b0.l1.rank0 | zero\nb0.l1.rank1 | one\x1b[1m\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rank", "3"], "launch b0.l0 has no log of rank 3"),
        (["--launch", "b1.l0"], "launch `b1.l0` has no logs"),
        (["--launch", "b9.l9"], "there is no launch `b9.l9`"),
    ],
)
def test_what_is_not_there_is_bad_input(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    write(folder, "b0.l0.rank0.log", "x\n")
    assert main(["logs", str(folder), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_run_without_logs_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", str(folder), "-f"]) == 2
    assert "has no logs" in capsys.readouterr().err
    (folder / "logs").rmdir()
    assert main(["logs", str(folder)]) == 2


def test_a_run_that_is_not_done_and_that_nobody_writes_is_not_followed_and_why_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was detached, say, or killed."""
    write(folder, "b0.l0.rank0.log", "x\n")
    assert main(["logs", str(folder), "-f"]) == 0
    out, err = capsys.readouterr()
    assert out == "b0.l0.rank0 | x\n"
    assert err.startswith("note       the run is not done, and nothing is written here now: ")
    assert f"`broadgauge run --resume {folder}`" in err
    assert main(["logs", str(folder)]) == 0
    assert "note" not in capsys.readouterr().err


def test_nothing_is_said_of_a_run_that_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_folder(tmp_path, PLAN)
    run_in(made)
    made.close()
    write(made.path, "b0.l0.rank0.log", "x\n")
    assert main(["logs", str(made.path), "-f"]) == 0
    assert "note" not in capsys.readouterr().err


@contextmanager
def followed(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """`logs -f` of a run that goes on, in a process of its own: only what it flushes is seen."""
    command = [sys.executable, "-m", "broadgauge", "logs", str(folder), "-f"]
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=buffered) as tool:
        try:
            yield tool
        finally:
            tool.kill()


def test_following_shows_what_comes_and_ends_with_the_run(folder: Path) -> None:
    """Each line is written once the one before was seen: none waits for the end."""
    lock = FolderLock(folder)
    with followed(folder) as tool:
        assert tool.stdout is not None
        for number in range(3):
            write(folder, "b0.l0.rank0.log", f"{number}\n")
            assert tool.stdout.readline() == f"b0.l0.rank0 | {number}\n"
        write(folder, "b0.l0.rank0.log", "last words")
        lock.release()
        assert tool.stdout.read() == "b0.l0.rank0 | last words\n"
        assert tool.wait(HANG_S) == 0


def test_ctrl_c_ends_following_and_leaves_the_run(folder: Path) -> None:
    lock = FolderLock(folder)
    write(folder, "b0.l0.rank0.log", "one\n")
    with followed(folder) as tool:
        assert tool.stdout is not None
        assert tool.stderr is not None
        assert tool.stdout.readline() == "b0.l0.rank0 | one\n"
        tool.send_signal(signal.SIGINT)
        assert tool.wait(HANG_S) == ExitCode.INTERRUPTED
        launch, last = tool.stderr.read().splitlines()
        assert launch.startswith("launch     b0.l0: ")
        assert last == "broadgauge: interrupted by SIGINT"
    assert is_being_written(folder)
    lock.release()
