"""Is a storage that does not answer told of, with what was asked of it?"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.driving import wait_until
from tests.hanging_mount import Ask, hanging_mount

from broadgauge.probes.storage.answering import StorageWatch, waiting_calls
from broadgauge.probes.storage.kernel_calls import WaitingCall, waiting_call

FSYNC = WaitingCall(words="fsync of /mnt/file", evidence="7 fsync 0x5 12")
NEXT_FSYNC = WaitingCall(words="fsync of /mnt/file", evidence="7 fsync 0x5 13")
READ = WaitingCall(words="read of /mnt/file", evidence="8 read 0x6 1")


def told_of(*looks: tuple[float, list[WaitingCall]]) -> list[str]:
    told: list[str] = []
    watch = StorageWatch("/mnt", told.append)
    for now_s, calls in looks:
        watch.look(now_s, calls)
    return told


def test_a_call_that_does_not_come_back_is_told_once_and_its_answer_too() -> None:
    looks = [(second, [FSYNC]) for second in (10.0, 11.0, 12.0)]
    assert told_of(*looks) == ["fsync of /mnt/file"]
    assert told_of(*looks, (15.0, [])) == ["fsync of /mnt/file", ""]


def test_calls_that_follow_each_other_are_answers() -> None:
    assert told_of((1.0, [FSYNC]), (2.0, [NEXT_FSYNC]), (3.0, [FSYNC]), (4.0, [NEXT_FSYNC])) == []


def test_of_several_the_oldest_is_told() -> None:
    looks = [(1.0, [FSYNC]), (2.0, [READ, FSYNC]), (3.0, [READ, FSYNC]), (9.0, [READ, FSYNC])]
    assert told_of(*looks) == ["fsync of /mnt/file"]


@contextmanager
def waiting_for_a_pipe(folder: Path) -> Iterator[Path]:
    """A thread of this process opens it to read, and nobody is there who would write."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.read_bytes)
    thread.start()
    try:
        yield pipe
    finally:
        pipe.write_bytes(b"")
        thread.join()


def test_what_a_thread_waits_for_is_known_by_its_path(tmp_path: Path) -> None:
    here, elsewhere = frozenset({str(tmp_path)}), frozenset({f"{tmp_path}/pip", "/other"})
    with waiting_for_a_pipe(tmp_path) as pipe:
        wait_until(lambda: [call.words for call in waiting_calls(here)] == [f"open of {pipe}"])
        assert waiting_calls(here) == waiting_calls(here)
        assert not waiting_calls(elsewhere)
    assert not waiting_calls(here)


OPENS = "import os, sys; os.open(sys.argv[1], os.O_RDONLY)"


def test_what_a_worker_waits_for_is_known_too(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    worker = subprocess.Popen([sys.executable, "-c", OPENS, str(pipe)])
    try:
        here = frozenset({str(tmp_path)})
        wait_until(lambda: [call.words for call in waiting_calls(here)] == [f"open of {pipe}"])
    finally:
        worker.kill()
        worker.wait()
    assert not waiting_calls(here)


MAKES = """
import os, sys
os.mkdir(sys.argv[1] + "/folder")
fd = os.open(sys.argv[1] + "/folder/file", os.O_CREAT | os.O_WRONLY)
os.write(fd, bytes(100))
os.fsync(fd)
"""


@pytest.mark.root
@pytest.mark.parametrize(
    ("at", "words"),
    [
        (None, "mkdir of {}/folder"),
        (Ask.MKDIR, "mkdir of {}/folder"),
        (Ask.CREATE, "open of {}/folder/file"),
        (Ask.WRITE, "write of {}/folder/file"),
        (Ask.FSYNC, "fsync of {}/folder/file"),
    ],
)
def test_what_is_asked_of_a_mount_that_hangs(tmp_path: Path, at: Ask | None, words: str) -> None:
    """Whether or not it can be killed."""
    with hanging_mount(tmp_path, at):
        asking = subprocess.Popen([sys.executable, "-c", MAKES, str(tmp_path)])

        def found() -> str | None:
            call = waiting_call(asking.pid, asking.pid, frozenset({str(tmp_path)}))
            return None if call is None else call.words

        wait_until(lambda: found() == words.format(tmp_path))
        asking.kill()
    asking.wait()
