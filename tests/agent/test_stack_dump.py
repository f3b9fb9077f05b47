"""Is it known when a process has written its stacks, and not before?"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.driving import wait_until

from broadgauge.agent.supervisor.stack_dump import StackDump

NUM_THREADS = 30
STANDS = f"""
import faulthandler, signal, sys, threading, time
faulthandler.register(signal.SIGUSR1)

def stand(depth):
    if depth:
        return stand(depth - 1)
    time.sleep(1000)

for _ in range({NUM_THREADS} - 1):
    threading.Thread(target=stand, args=(50,), daemon=True).start()
"""
BLOCKS = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
WAITS = "sys.stdout.write('stands\\n')\nsys.stdout.flush()\ntime.sleep(1000)\n"
"""In one write, even where PYTHONUNBUFFERED is set: else its newline may follow the stacks."""


@contextmanager
def process(program: str, log: Path) -> Iterator[tuple[int, int]]:
    """Its pid and the descriptor of its log, once it stands."""
    with log.open("ab") as written:
        started = subprocess.Popen([sys.executable, "-c", program], stdout=written, stderr=written)
        try:
            wait_until(lambda: "stands\n" in log.read_text(), 300)
            yield started.pid, written.fileno()
        finally:
            started.kill()
            started.wait()


def test_what_is_whole_has_every_thread(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with process(STANDS + WAITS, log) as (pid, log_fd):
        dump = StackDump.ask(pid, log_fd)
        wait_until(dump.is_whole, 300, 0.0)
        whole = log.read_text()
        assert whole.count("(most recent call first)") == NUM_THREADS
        assert whole.endswith(" in <module>\n")


def test_a_stopped_process_is_continued(tmp_path: Path) -> None:
    with process(STANDS + WAITS, tmp_path / "log") as (pid, log_fd):
        subprocess.run(["kill", f"-{signal.SIGSTOP}", str(pid)], check=True)
        wait_until(StackDump.ask(pid, log_fd).is_whole, 300)


def test_another_thread_answers_for_one_that_blocks_the_signal(tmp_path: Path) -> None:
    """The kernel gives it to whichever hears; a library's threads do not."""
    log = tmp_path / "log"
    with process(STANDS + BLOCKS + WAITS, log) as (pid, log_fd):
        wait_until(StackDump.ask(pid, log_fd).is_whole, 300, 0.0)
        assert log.read_text().count("(most recent call first)") == NUM_THREADS


def test_one_that_does_not_hear_is_never_whole(tmp_path: Path) -> None:
    """Whatever else it writes: threads inherit what the first one blocks."""
    log = tmp_path / "log"
    with process(f"import signal\n{BLOCKS}{STANDS}{WAITS}", log) as (pid, log_fd):
        dump = StackDump.ask(pid, log_fd)
        assert not dump.is_whole()
        with log.open("a") as other:
            other.write("an epoch\n")
        assert not dump.is_whole()
