"""The processes of a test's cluster: each has a log, and is ended by pid whatever happens."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.cluster import guard

END_S = 10.0
"""After SIGTERM, before SIGKILL."""
_POLL_S = 0.05


class ProcessEndedError(Exception):
    """A process ended that should serve, or was not ready in time: the end of its log says why."""


@dataclass(kw_only=True)
class Process:
    """A running program."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    def wait_until(self, is_ready: Callable[[], bool], *, limit_s: float) -> None:
        """ProcessEndedError where it ends before, or is not ready in time."""
        end_s = time.monotonic() + limit_s
        while not is_ready():
            if (code := self.popen.poll()) is not None:
                raise ProcessEndedError(f"{self.name} ended with {code}:\n{self.log_end()}")
            if time.monotonic() > end_s:
                raise ProcessEndedError(f"{self.name} is not ready:\n{self.log_end()}")
            time.sleep(_POLL_S)

    def log_end(self, num_lines: int = 30) -> str:
        """The last lines of what it wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-num_lines:])

    def cpu_s(self) -> float:
        """Of the process itself and of children that it waited for; 0 when it is gone.

        Source: fields 14 to 17 of /proc/PID/stat in proc(5).
        """
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def end(self, *, kill: bool = False) -> None:
        """SIGTERM, and SIGKILL where that is not heard; SIGKILL at once with `kill`."""
        if self.popen.poll() is None:
            self.popen.kill() if kill else self.popen.terminate()
        try:
            self.popen.wait(END_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class Processes:
    """Those of one cluster. They end with `end_all`, or by the guard when this process dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, Process] = {}
        self._cpu_before_s: dict[str, float] = {}
        self._guard = subprocess.Popen(
            [sys.executable, guard.__file__, str(folder)], stdin=subprocess.PIPE, text=True
        )

    def __getitem__(self, name: str) -> Process:
        return self._running[name]

    def start(
        self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> Process:
        """Its output goes to `<folder>/<name>.log`, after that of an earlier one of this name."""
        log = self._folder / f"{name}.log"
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [str(each) for each in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=None if environment is None else {**os.environ, **environment},
                start_new_session=True,  # Ctrl-C in a terminal is for the test alone
            )
        if (ticks := guard.start_ticks(popen.pid)) is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.write(f"{popen.pid} {ticks}\n")
            self._guard.stdin.flush()
        self._running[name] = Process(name=name, popen=popen, log=log)
        return self._running[name]

    def end(self, name: str, *, kill: bool = False) -> None:
        """Ends one; its CPU time still counts."""
        process = self._running.pop(name)
        self._cpu_before_s[name] = self._cpu_before_s.get(name, 0.0) + process.cpu_s()
        process.end(kill=kill)

    def cpu_s(self) -> dict[str, float]:
        """User and system time of each since it was first started, by name."""
        used_s = dict(self._cpu_before_s)
        for name, process in self._running.items():
            used_s[name] = used_s.get(name, 0.0) + process.cpu_s()
        return used_s

    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._running.items()}

    def end_all(self) -> None:
        """At once, last started first: what they keep is thrown away."""
        try:
            for name in reversed(list(self._running)):
                self.end(name, kill=True)
        finally:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.wait()
