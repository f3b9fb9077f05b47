"""How long has this process been there? Its start is the kernel's, before Python's first line."""

import os
import time
from pathlib import Path

STAT = Path("/proc/self/stat")
_START_FIELD = 22
"""Source: proc_pid_stat(5): starttime, in clock ticks since the machine's boot."""


def process_age_s(stat: Path = STAT) -> float | None:
    """To a tick, 10 ms. None: the kernel does not say, or says what can't be."""
    try:
        # The second field is the program's name, which may have spaces and parentheses in it.
        fields = stat.read_text().rpartition(")")[2].split()
        ticks = int(fields[_START_FIELD - 3])
    except (OSError, ValueError, IndexError):
        return None
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    age_s = now_s - ticks / os.sysconf("SC_CLK_TCK")
    return age_s if ticks > 0 and 0 <= age_s <= now_s else None
