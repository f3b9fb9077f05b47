"""Has a rank written its stacks? Nobody says so: the kernel and the rank's log do.

faulthandler writes them in the handler of a signal. The kernel blocks that signal in the thread
that handles it until the handler returns, so a rank whose log has grown, and in no thread of which
the signal is pending or newly blocked, has written all of them. A process in which every thread
blocks it keeps it pending for ever. Source: sigaction(2), without SA_NODEFER, as
faulthandler.register() asks for it; signal(7); proc_pid_status(5).
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

STACKS_SIGNAL = signal.SIGUSR1
_BIT = 1 << (STACKS_SIGNAL - 1)
_PENDING = ("SigPnd:", "ShdPnd:")
_BLOCKED = ("SigBlk:",)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDump:
    """Stacks that a process was asked for."""

    pid: int
    log_fd: int
    log_bytes: int
    """Of its log, before."""
    deaf_threads: frozenset[str]
    """Had the signal blocked before: a library's, which leave it to the main thread."""

    @classmethod
    def ask(cls, pid: int, log_fd: int) -> "StackDump":
        """A stopped process is continued, or it could not answer."""
        dump = cls(
            pid=pid,
            log_fd=log_fd,
            log_bytes=os.fstat(log_fd).st_size,
            deaf_threads=frozenset(_threads_with_it(pid, _BLOCKED)),
        )
        os.kill(pid, STACKS_SIGNAL)
        os.kill(pid, signal.SIGCONT)
        return dump

    def is_whole(self) -> bool:
        """Is all of it in the log?"""
        if os.fstat(self.log_fd).st_size <= self.log_bytes:
            return False
        # In this order: what was pending a moment ago may be blocked by now, and never the reverse.
        if _threads_with_it(self.pid, _PENDING):
            return False
        return _threads_with_it(self.pid, _BLOCKED) <= self.deaf_threads


def _threads_with_it(pid: int, names: tuple[str, ...]) -> set[str]:
    """In which the signal is in one of these masks."""
    found = set()
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = status.read_text(errors="replace").splitlines()
        except OSError:  # it has ended meanwhile
            continue
        masks = [int(line.split()[1], 16) for line in lines if line.startswith(names)]
        if any(mask & _BIT for mask in masks):
            found.add(status.parent.name)
    return found
