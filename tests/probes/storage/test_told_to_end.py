"""Does a rank that is told to end during a trial leave nothing, and end by that signal?"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from broadgauge.probes.storage.told_to_end import cleaning_when_told_to_end

HELD = """
import os, sys, time
from pathlib import Path
from broadgauge.probes.storage.own_folder import own_folder
from broadgauge.probes.storage.told_to_end import cleaning_when_told_to_end
with cleaning_when_told_to_end(), own_folder(Path(sys.argv[1]), "rank0", 100) as folder:
    (folder / "big").write_text("x")
    told, tells = os.pipe()
    worker = os.fork()  # whose child forgets signals that come before it is there
    if worker == 0:
        os.write(tells, b".")
    else:
        os.read(told, 1)
        print(worker, flush=True)  # one of the two: lines of both may mix
    while worker == 0 or sys.argv[2] == "waits":
        time.sleep(0.05)  # a signal may come just before one
    _, status = os.waitpid(worker, 0)
    assert os.waitstatus_to_exitcode(status) == -15
    print((folder / "big").exists(), flush=True)
    raise SystemExit(7)
"""


@contextmanager
def started(storage: Path, does: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """It has a folder, and a child of this pid that is there; then it `waits`, or `looks` whether
    the child ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(storage), does],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as rank:
        assert rank.stdout is not None
        try:
            yield rank, int(rank.stdout.readline())
        finally:
            with suppress(ProcessLookupError):
                os.killpg(rank.pid, signal.SIGKILL)


def test_what_it_wrote_is_removed_and_its_end_is_the_signals(tmp_path: Path) -> None:
    """And so is its worker's, which gets the signal with it."""
    (tmp_path / "theirs.txt").write_text("kept")
    with started(tmp_path, "waits") as (rank, _):
        assert rank.stdout is not None
        os.killpg(rank.pid, signal.SIGTERM)
        rank.stdout.read()  # until the worker has ended, too
        assert rank.wait() == -signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.txt"]


def test_a_worker_that_is_ended_removes_nothing_of_the_ranks(tmp_path: Path) -> None:
    with started(tmp_path, "looks") as (rank, worker):
        assert rank.stdout is not None
        os.kill(worker, signal.SIGTERM)
        assert rank.stdout.read() == b"True\n"
        assert rank.wait() == 7


def test_nothing_is_changed_where_nobody_ends_it() -> None:
    former = signal.getsignal(signal.SIGTERM)
    with cleaning_when_told_to_end():
        assert signal.getsignal(signal.SIGTERM) is not former
    assert signal.getsignal(signal.SIGTERM) is former


def test_in_another_thread_no_signal_is_taken() -> None:
    taken = []

    def work() -> None:
        with cleaning_when_told_to_end():
            taken.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert taken == [signal.getsignal(signal.SIGTERM)]
