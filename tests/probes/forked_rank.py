"""A rank that is forked from a process in which torch is imported: it lives after 20 ms, not 3 s.

    process = ForkedRank((sys.executable, "-m", "broadgauge.probes.worker"), environment, fds, log)

It runs the same program with the same arguments, environment, pipes and log, and has what the
harness uses of Popen. What torch or the C library read when a process starts must be the same for
all ranks: a rank that changes it is started as a process of its own.
"""

import contextlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

START_VARIABLES = {"OMP_NUM_THREADS": "1"}
"""Read when torch is imported: the harness gives all ranks these."""
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", "tests.probes.preloaded", __name__])


class ForkedRank:
    """One rank. `fds`: by the variable that tells the rank, descriptors of this process."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        fds: Mapping[str, int],
        log: Path,
    ) -> None:
        self.command = tuple(command)
        ends = {name: Connection(os.dup(fd)) for name, fd in fds.items()}
        arguments = (self.command[1:], dict(environment), ends, str(log))
        self._process = _CONTEXT.Process(target=_be_rank, args=arguments, daemon=True)
        with _environment(START_VARIABLES):
            self._process.start()
        for end in ends.values():
            end.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.command, timeout or 0)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def end_of_forking() -> None:
    """Ends the process from which ranks are forked, so that its time is counted as ours."""
    from multiprocessing import forkserver

    forkserver._forkserver._stop()  # type: ignore[attr-defined]


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]):
    """The first rank starts the process that is forked, which inherits them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _be_rank(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    ends: Mapping[str, Connection],
    log: str,
) -> None:
    """In the fork: everything that Popen would have set up, then the program."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A rank may start processes, and does it as Python does by default.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    multiprocessing.set_start_method(None, force=True)  # type: ignore[arg-type]
    os.environ.clear()
    os.environ.update(environment)
    os.environ.update({name: str(end.fileno()) for name, end in ends.items()})
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for fd in (1, 2):
        os.dup2(output, fd)
    os.close(output)
    program, *_ = arguments
    if program == "-m":
        sys.argv = [arguments[1], *arguments[2:]]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [*arguments]
        runpy.run_path(program, run_name="__main__")
