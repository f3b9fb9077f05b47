"""What did a rank write last?"""

import os
import re
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
"""Colours and other control characters: they would steer the terminal that shows the line."""
MAX_LINES = 20
MAX_LINE_CHARACTERS = 500
_TAIL_BYTES = 64 * 1024
OWN_LINE = "# broadgauge:"
"""How lines begin that the tool and its supervisor write into a rank's log."""


def last_lines(path: Path) -> tuple[str, ...]:
    """The end of a log without our own lines, however long it is; empty when there is none."""
    lines = tail(path).splitlines()
    kept = [line.rstrip() for line in lines if line.strip() and not line.startswith(OWN_LINE)]
    return tuple(line[:MAX_LINE_CHARACTERS] for line in kept[-MAX_LINES:])


def tail(path: Path) -> str:
    """The last 64 KiB of a log, as text; empty when there is none."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - _TAIL_BYTES))
            data = log.read(_TAIL_BYTES)
    except OSError:
        return ""
    return _CONTROL.sub("", data.decode(errors="replace"))
