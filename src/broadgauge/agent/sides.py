"""How do processes measure side by side? Forked, heard until they end, and ended.

Where one side fails the others are ended and its error is told: no side waits for one that is gone.
"""

import json
import os
import select
import signal
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

Figures = dict[str, float]


class OtherSideGone(Exception):  # noqa: N818  says what is so, and why is the other's to say
    """A side missed the other one, whose own error is the one to tell."""


class SideFailed(Exception):  # noqa: N818  says what is so
    """A side failed by itself: why, in a line."""


@dataclass(slots=True, kw_only=True)
class Side:
    """One process, and what it has answered so far."""

    pid: int
    result_fd: int
    said: bytearray = field(default_factory=bytearray)

    def failure(self) -> str | None:
        """Why did it fail, in a line? Asked when it has ended. None: it did not, by itself."""
        if not self.said:
            return "it was killed"
        error: str | None = json.loads(self.said).get("error")
        return error

    @property
    def has_missed_the_other(self) -> bool:
        return b'"is_gone"' in self.said

    def figures(self) -> Figures:
        found: Figures = json.loads(self.said)["figures"]
        return found


def fork_side(work: Callable[[], Figures]) -> Side:
    """Run `work` in a child."""
    result_in, result_out = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(result_out)
        return Side(pid=pid, result_fd=result_in)
    try:
        answer: dict[str, Any] = {"figures": work()}
    except OtherSideGone:
        answer = {"is_gone": True}
    except SideFailed as failure:
        answer = {"error": str(failure)}
    except BaseException as error:  # noqa: BLE001  a forked child must never run its parent's code
        answer = {"error": first_line(error)}
    write_all(result_out, json.dumps(answer).encode())
    os._exit("figures" not in answer)


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def first_line(error: BaseException) -> str:
    """What kind of error, and what it says, without its hint."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[0]


def gather(sides: Sequence[Side], awaited: Sequence[Side]) -> None:
    """Hear all sides until those awaited have ended. Raises SideFailed.

    Where a side has missed the other, the other has ended, and is heard as well.
    """
    waiting = {side.result_fd: side for side in sides}
    poller = select.poll()
    for fd in waiting:
        poller.register(fd, select.POLLIN)
    is_missed = False
    while waiting and (is_missed or any(side.result_fd in waiting for side in awaited)):
        ended = []
        for fd, _ in poller.poll():
            data = os.read(fd, 1 << 16)
            if data:
                waiting[fd].said += data
            else:
                poller.unregister(fd)
                ended.append(waiting.pop(fd))
        is_missed |= any(side.has_missed_the_other for side in ended)
        failures = [side.failure() for side in ended]
        for failure in filter(None, failures):
            raise SideFailed(failure)


def end_side(side: Side) -> None:
    """Nothing of it is left afterwards."""
    os.close(side.result_fd)
    with suppress(ProcessLookupError):
        os.kill(side.pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # where another part of this process reaps all children
        os.waitpid(side.pid, 0)
