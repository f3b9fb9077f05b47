"""How are the programs of a storage started in their node, and when are they ready?

They are children of PID 1 of the cluster, which the kernel takes along when it ends.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.emulated.errors import EmulationError

READY_WITHIN_S = 20.0
"""A server or a mount is there in less than a second; a machine that is busy takes longer."""
_LOOK_EVERY_S = 0.02
_LAST_LINES = 5
_CAUGHT_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageProcess:
    """A program that runs as long as the cluster."""

    what: str
    """`the S3 server of bucket`: for errors."""
    pid: int
    log: Path


def start_program(
    argv: Sequence[str],
    *,
    what: str,
    enter: Callable[[], None],
    variables: Mapping[str, str],
    log: Path,
) -> StorageProcess:
    """Fork and exec; `enter` runs in the child first. It inherits no variable but PATH."""

    def become() -> None:
        path = os.environ.get("PATH", os.defpath)
        os.execve(argv[0], list(argv), {"PATH": path, "HOME": "/nonexistent", **variables})

    return start_function(become, what=what, enter=enter, log=log)


def start_function(
    work: Callable[[], None], *, what: str, enter: Callable[[], None], log: Path
) -> StorageProcess:
    """Run `work` in a child of this process until the cluster ends."""
    log_fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    pid = os.fork()
    if pid == 0:
        _live(work, enter, log_fd)
    os.close(log_fd)
    return StorageProcess(what=what, pid=pid, log=log)


def _live(work: Callable[[], None], enter: Callable[[], None], log_fd: int) -> None:
    """The forked child; never returns."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _CAUGHT_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        enter()
        work()
    except BaseException as error:  # noqa: BLE001  the last frame of a forked child
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def await_ready(daemon: StorageProcess, is_ready: Callable[[], bool], *, hint: str) -> None:
    """Wait until it is. Raises EmulationError where it ends first, or takes too long."""
    due_s = time.monotonic() + READY_WITHIN_S
    while not is_ready():
        pid, status = os.waitpid(daemon.pid, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            raise _failure(daemon, f"it ended with {code}", hint)
        if time.monotonic() > due_s:
            raise _failure(daemon, f"it was not ready within {READY_WITHIN_S:g} s", hint)
        time.sleep(_LOOK_EVERY_S)


def _failure(daemon: StorageProcess, how: str, hint: str) -> EmulationError:
    text = daemon.log.read_text(errors="replace") if daemon.log.exists() else ""
    said = " | ".join(text.splitlines()[-_LAST_LINES:])
    detail = f"{how}: {said or 'it said nothing'}"
    return EmulationError(f"start {daemon.what}", detail, error_number=None, hint=hint)
