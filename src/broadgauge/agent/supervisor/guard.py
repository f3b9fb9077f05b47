"""What makes sure that nothing of a launch outlives the tool, the guard or the supervisor?

The guard forks the supervisor and waits. Each watches the other by a pipe whose end the kernel
closes, whatever ends a process; the tool is watched by its end of the socket. With namespaces the
supervisor is PID 1 of a PID namespace, and the kernel ends all that is in it. Without, both
processes are child subreapers and end every descendant.
"""

import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from broadgauge.agent.emulated.namespaces import enter_cluster_namespaces
from broadgauge.agent.emulated.syscalls import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    prctl,
)
from broadgauge.agent.supervisor.descendants import kill_descendants
from broadgauge.messages.launch_order import Mode
from broadgauge.messages.waiting_limits import waiting_limit_s

Supervise = Callable[[int], int]
"""Given the descriptor that ends with the guard; gives the exit status."""

_LAST_WORDS_S = waiting_limit_s(2.0)
"""For the supervisor, after the tool is gone, to end everything itself."""
_END_S = waiting_limit_s(5.0)
"""For the supervisor's process, after that."""
_LOOK_S = 0.005
_NOT_ENDED = 1
"""The exit status, where the supervisor has none."""


def guard(mode: Mode, control: socket.socket, supervise: Supervise) -> int:
    """Run `supervise` in a child and leave nothing behind; gives the child's exit status.

    Raises EmulationError where the kernel refuses the namespaces.
    """
    if mode is Mode.NAMESPACES:
        enter_cluster_namespaces()
    else:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    guard_lives_in, guard_lives_out = os.pipe()
    child_lives_in, child_lives_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(guard_lives_out)
        os.close(child_lives_in)
        os._exit(_be_supervisor(mode, guard_lives_in, supervise))
    os.close(guard_lives_in)
    os.close(child_lives_out)
    _wait_for_either(child_lives_in, control)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    status = _status_of(pid)
    if mode is Mode.PLAIN:
        kill_descendants()
    return _NOT_ENDED if status is None else os.waitstatus_to_exitcode(status)


def _status_of(pid: int) -> int | None:
    """Of a child that has ended or been killed. None: it does not end. PID 1 of a namespace ends
    after all that is in there, and what waits in the kernel can't be killed."""
    deadline_s = time.monotonic() + _END_S
    while time.monotonic() < deadline_s:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(_LOOK_S)
    return None


def _wait_for_either(child_lives: int, control: socket.socket) -> None:
    """Wait until the supervisor has ended, or the tool has and the supervisor had its time."""
    poller = select.poll()
    poller.register(child_lives, 0)
    poller.register(control.fileno(), 0)
    ended = [fd for fd, _ in poller.poll()]
    if child_lives not in ended:
        poller.unregister(control.fileno())
        poller.poll(_LAST_WORDS_S * 1000)


def _be_supervisor(mode: Mode, guard_lives: int, supervise: Supervise) -> int:
    """The forked child's life; never raises, as its parent's code must not go on in it."""
    try:
        if mode is Mode.NAMESPACES:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        else:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
        return supervise(guard_lives)
    except BaseException:  # noqa: BLE001  the last frame of a forked child
        traceback.print_exc()
        return 1
    finally:
        if mode is Mode.PLAIN:
            kill_descendants()
        sys.stderr.flush()
