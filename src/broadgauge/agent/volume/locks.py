"""Who of several pods fills a folder? One at a time, as long as it lives.

A lock of the kernel's is gone when its holder is, however that ended, and network file systems pass
it on (NFS 4, CephFS, Lustre with `flock`). Where a volume has none, or keeps it to each node, pods
tell by their folders who of them lives (`rooms`).
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
def held(path: Path) -> Iterator[bool]:
    """Waits for it, and says for whom; False: this volume has none. The file stays: removed, it
    would be two. Raises OSError."""
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _wait_for(number, path)
    finally:
        os.close(number)


def _wait_for(number: int, path: Path) -> bool:
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
            say(f"this volume gives no locks ({error.strerror}): pods tell by their folders")
            return False
        else:
            os.truncate(number, 0)
            os.pwrite(number, f"{socket.gethostname()}\n".encode(), 0)
            return True
