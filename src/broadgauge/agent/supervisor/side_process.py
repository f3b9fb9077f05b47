"""How does the supervisor measure what takes long, and never stand still? In a child of its own.

The child answers through a pipe that the supervisor's selector watches; one that takes longer than
its limit is ended with all that it started.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.sides import SideFailed, first_line

_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SideAnswer:
    """What came of it: figures, or what went wrong."""

    figures: Mapping[str, float]
    trouble: str | None = None
    """None: all went well."""


@dataclass(slots=True, kw_only=True)
class SideProcess:
    """A child at work beside the supervisor's loop."""

    pid: int
    fd: int
    limit_s: float
    deadline_s: float
    _said: bytearray = field(default_factory=bytearray)

    @classmethod
    def start(cls, work: Callable[[], Mapping[str, float]], limit_s: float) -> "SideProcess":
        """Run `work` in a child, the leader of a process group of its own."""
        answer_in, answer_out = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(answer_in)
            _work_and_leave(work, answer_out)
        os.close(answer_out)
        with suppress(OSError):  # either of the two is first
            os.setpgid(pid, pid)
        os.set_blocking(answer_in, False)
        deadline_s = time.monotonic() + limit_s
        return cls(pid=pid, fd=answer_in, limit_s=limit_s, deadline_s=deadline_s)

    def read(self) -> SideAnswer | None:
        """Take in what it says; its answer once that is whole. None: there is more to come."""
        try:
            data = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return None
        if data:
            self._said += data
            return None
        if not self._said:
            return SideAnswer(figures={}, trouble="the measurement was killed")
        return SideAnswer(**json.loads(self._said))

    def give_up(self) -> SideAnswer:
        """Its limit has passed."""
        return SideAnswer(figures={}, trouble=f"no answer in {self.limit_s:g} s")

    def end(self) -> None:
        """Nothing of it goes on; the supervisor reaps it with all other children."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.close(self.fd)


def _work_and_leave(work: Callable[[], Mapping[str, float]], answer_fd: int) -> None:
    """The forked child's life; never returns."""
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        answer: dict[str, object] = {"figures": dict(work())}
    except EmulationError as error:
        answer = {"figures": {}, "trouble": error.detail}
    except SideFailed as error:
        answer = {"figures": {}, "trouble": str(error)}
    except BaseException as error:  # noqa: BLE001  the last frame of a forked child
        answer = {"figures": {}, "trouble": first_line(error)}
    os.write(answer_fd, json.dumps(answer).encode())
    os._exit(0)
