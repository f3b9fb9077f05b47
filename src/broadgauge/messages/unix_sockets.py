"""How is a unix socket reached whose path is too long for the kernel?

A socket's address holds 107 bytes of a path, and temporary folders may lie deep. Through a
descriptor of its folder every path is short.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_BYTES = 107
"""Source: unix(7), sun_path, less its last byte."""


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Its path, or another one of the same socket while one binds or connects. Raises OSError.

    Source: proc_pid_fd(5).
    """
    if len(os.fsencode(path)) <= MOST_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
