"""What still runs when a run of CI has taken too long? It is shown with where it hangs, and ended.

A process belongs to the run by a variable in its environment, or by its parent: so daemons whose
parents are gone are found, too. Nothing but the standard library is used. Linux only.
"""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "CI_RUN_ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One of /proc. Source: proc(5)."""

    pid: int
    parent: int
    state: str
    age_s: float
    line: str
    is_marked: bool

    def __str__(self) -> str:
        return f"{self.pid:>8} below {self.parent:<8}{self.state} {self.age_s:>6.0f} s  {self.line}"

    @property
    def is_python(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/exe").readlink().name.startswith("python")
        except OSError:
            return False


class Watchdog(threading.Thread):
    """Shows and ends what `environment` was given to, once `limit_s` are over and `running` says
    that something still is."""

    def __init__(
        self,
        running: Callable[[], list[str]],
        say: Callable[[str], None],
        *,
        limit_s: float,
        grace_s: float,
    ) -> None:
        super().__init__(daemon=True)
        self._running, self._say = running, say
        self._limit_s, self._grace_s = limit_s, grace_s
        self._mark = uuid.uuid4().hex
        self.has_barked = False

    @property
    def environment(self) -> dict[str, str]:
        """For every process of the run."""
        return os.environ | {VARIABLE: self._mark}

    def run(self) -> None:
        end_s = time.monotonic() + self._limit_s
        while (left_s := end_s - time.monotonic()) > 0:
            time.sleep(left_s)
        if names := self._running():
            self.has_barked = True
            limit = f"{self._limit_s / 60:.0f} minutes are over"
            self._say(f"ci: {limit}; what still runs is ended: {', '.join(names)}")
            self._end_all()

    def _end_all(self) -> None:
        """Python processes say on their standard error where each of their threads is, if they
        have faulthandler on, as pytest has; whatever is left after that is killed."""
        for process in family(self._mark):
            self._say(f"ci: {process}")
        for process in self._python():
            _signal(process.pid, signal.SIGABRT)
        self._wait_until(lambda: not self._python())
        for process in family(self._mark):
            _signal(process.pid, signal.SIGKILL)
        self._wait_until(lambda: not self._running())
        if self._running():
            self._say("ci: it can not be ended")
            os._exit(1)

    def _python(self) -> list[Process]:
        return [process for process in family(self._mark) if process.is_python]

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        end_s = time.monotonic() + self._grace_s
        while not is_so() and time.monotonic() < end_s:
            time.sleep(0.05)


def family(mark: str) -> Iterator[Process]:
    """The marked processes and all below them, the oldest first, zombies and the caller's own
    process left out."""
    members = {os.getpid()}
    for process in sorted(_processes(mark), key=lambda each: (-each.age_s, each.pid)):
        if process.pid not in members and (process.is_marked or process.parent in members):
            members.add(process.pid)
            yield process


def _processes(mark: str) -> Iterator[Process]:
    wanted = f"{VARIABLE}={mark}".encode()
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            is_marked = wanted in (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is another user's
            continue
        if fields[0] != "Z":
            yield Process(
                pid=int(folder.name),
                parent=int(fields[1]),
                state=fields[0],
                age_s=up_s - int(fields[19]) / ticks,
                line=line[:160].strip(),
                is_marked=is_marked,
            )


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
