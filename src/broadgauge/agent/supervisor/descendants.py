"""How is everything ended that a process started, also what called setsid?

A child subreaper inherits every orphan below it, so its descendants are all that was started.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from broadgauge.messages.waiting_limits import waiting_limit_s

_KILL_LIMIT_S = waiting_limit_s(5.0)
_STUCK_LIMIT_S = waiting_limit_s(1.0)
"""For those that wait in the kernel, where no signal reaches them."""
_STUCK = ("D", "Z")
"""`Z`: one of its threads does, or its parent."""


def parent_and_state(pid: int) -> tuple[int, str] | None:
    """Who is this process's parent, and which state is it in (`R`, `S`, `T`, `Z`, …)?

    None: there is no such process. Source: proc_pid_stat(5), fields 3 and 4.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, parent = text[text.rindex(")") + 2 :].split(maxsplit=2)[:2]
    return int(parent), state


def descendants(ancestor: int) -> set[int]:
    """Which processes were started by `ancestor`, or by one it started, …?"""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            pid = int(entry.name)
            found = parent_and_state(pid)
            if found is not None:
                children.setdefault(found[0], []).append(pid)
    family: set[int] = set()
    waiting = [ancestor]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in family:
                family.add(child)
                waiting.append(child)
    return family


def kill_descendants(limit_s: float = _KILL_LIMIT_S) -> bool:
    """End everything below this process and reap it; was nothing left within the limit?"""
    now_s = stuck_since_s = time.monotonic()
    deadline_s = now_s + limit_s
    while True:
        reap_all()
        family = descendants(os.getpid())
        if not family:
            return True
        now_s = time.monotonic()
        if not all(map(_is_stuck, family)):
            stuck_since_s = now_s
        if now_s > min(deadline_s, stuck_since_s + _STUCK_LIMIT_S):
            return False
        for pid in family:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _is_stuck(pid: int) -> bool:
    found = parent_and_state(pid)
    return found is not None and found[1] in _STUCK


def reap_all() -> list[tuple[int, int]]:
    """Which children have ended since the last call? Pairs of pid and wait status."""
    ended = []
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended.append((pid, status))
    return ended
