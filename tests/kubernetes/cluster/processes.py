"""The processes of a test's cluster: each has a log, and is ended by pid whatever happens."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.cluster import guard
from tests.timeouts import HANG_S

_POLL_S = 0.05
_LAST_LINES = 30


class ProcessEndedError(Exception):
    """A process ended that should serve, or hangs: the end of its log says why."""


@dataclass(kw_only=True)
class Process:
    """A running program."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    def wait_until_ready(self, lacks: Callable[[], str | None], limit_s: float = HANG_S) -> None:
        """Until nothing is said to be lacking. ProcessEndedError where it ends before or hangs."""
        end_s = time.monotonic() + limit_s
        while (lacking := lacks()) is not None:
            if (code := self.popen.poll()) is not None:
                raise ProcessEndedError(f"{self.name} ended with {code}:\n{self.log_end()}")
            if time.monotonic() > end_s:
                said = f"{self.name} is not ready after {limit_s:g} s: {lacking}"
                raise ProcessEndedError(f"{said}\n{self.log_end()}")
            time.sleep(_POLL_S)

    def log_end(self) -> str:
        """The last lines of what it wrote, and where all of it is."""
        lines = self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        return "\n".join([*lines, f"(all of it: {self.log})"])


class Processes:
    """Those of one cluster. They end with `end_all`, or by the guard when this process dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, Process] = {}
        self._guard = subprocess.Popen(
            [sys.executable, guard.__file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,  # whoever kills the test's process group does not kill it
        )

    def start(
        self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> Process:
        """In the cluster's folder; its output goes to `<folder>/<name>.log`."""
        log = self._folder / f"{name}.log"
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [str(each) for each in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C in a terminal is for the test alone
            )
        if (ticks := guard.start_ticks(popen.pid)) is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.write(f"{popen.pid} {ticks}\n")
            self._guard.stdin.flush()
        self._running[name] = Process(name=name, popen=popen, log=log)
        return self._running[name]

    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._running.items()}

    def end(self, name: str) -> None:
        """At once, as a crash would; it may be started again."""
        process = self._running.pop(name)
        process.popen.kill()
        process.popen.wait()

    def end_all(self) -> None:
        """At once, last started first: what they keep is thrown away."""
        try:
            for process in reversed(self._running.values()):
                process.popen.kill()
                process.popen.wait()
            self._running.clear()
        finally:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.wait()
