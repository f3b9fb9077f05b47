"""Who of several pods fills a folder? One at a time, as long as it lives.

A lock of the kernel's is gone when its holder is, however that ended, and network file systems pass
it on (NFS 4, CephFS, Lustre with `flock`). Where a volume has none, each pod goes on: what they
write is the same, and the first to be done gives the folder its name.
Source: fcntl(2), "Advisory record locking" and "Lost locks".
"""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broadgauge.agent.volume.telling import TELL_EVERY_S, say

LOOK_EVERY_S = 0.5
_MOST_SHOWN = 200


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Waits for it, and says for whom. The file stays: removed, it would be two. Raises OSError."""
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _wait_for(number, path)
        yield
    finally:
        os.close(number)


def _wait_for(number: int, path: Path) -> None:
    told_s = float("-inf")
    while True:
        try:
            fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            if time.monotonic() - told_s >= TELL_EVERY_S:
                told_s = time.monotonic()
                holder = os.pread(number, _MOST_SHOWN, 0).decode(errors="replace").strip()
                say(f"waiting for {holder or 'another pod'}, which fetches the same ({path.name})")
            time.sleep(LOOK_EVERY_S)
        except OSError as error:
            say(f"this volume gives no locks ({error.strerror}): two pods may fetch the same")
            return
        else:
            os.truncate(number, 0)
            os.pwrite(number, f"{socket.gethostname()}\n".encode(), 0)
            return
