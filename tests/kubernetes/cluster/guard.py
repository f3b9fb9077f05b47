"""Ends the processes of an owner that died without ending them.

Its own process: told on standard input `PID START_TICKS` of each process. The end of standard input
is the owner's end, SIGKILL included.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_POLL_S = 0.02
_LIMIT_S = 60.0


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since the machine's start; None when it has ended.

    Source: fields 3 and 22 of /proc/PID/stat in proc(5), counted after the name in parentheses.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])


def main() -> None:
    """Until the owner is gone: Ctrl-C is its affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched = [tuple(map(int, line.split())) for line in sys.stdin]
    left = [pid for pid, ticks in watched if start_ticks(pid) == ticks]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    end_s = time.monotonic() + _LIMIT_S
    while any(map(start_ticks, left)) and time.monotonic() < end_s:
        time.sleep(_POLL_S)


if __name__ == "__main__":
    main()
