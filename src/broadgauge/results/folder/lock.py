"""Who writes this run folder? One process at a time.

The lock is flock(2) on the file `lock`: the kernel releases it however the holder ends. The file
holds the holder's pid, for the message only.
"""

import fcntl
import os
import socket
import time
from pathlib import Path

from broadgauge.results.folder.disk import PRIVATE_FILE, telling, write_all
from broadgauge.specs.errors import RunFolderError

LOCK_FILE = "lock"
_PATIENCE_S = 2.0
"""A tool that was killed leaves a supervisor that needs a moment to notice."""
_STEP_S = 0.05


class FolderLock:
    """Held from its making until `release`."""

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_FILE
        with telling("lock", path):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, PRIVATE_FILE)
        try:
            with telling("lock", path):
                self._wait(folder)
                os.ftruncate(self._descriptor, 0)
                write_all(self._descriptor, f"{os.getpid()} on {socket.gethostname()}\n".encode())
        except BaseException:
            os.close(self._descriptor)
            raise

    def _wait(self, folder: Path) -> None:
        for _ in range(max(1, round(_PATIENCE_S / _STEP_S))):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_STEP_S)
            else:
                return
        holder = os.pread(self._descriptor, 200, 0).decode(errors="replace").strip() or "unknown"
        raise RunFolderError(
            f"{folder} is being written by another process (pid {holder})",
            hint="wait until it ends, or end it: what it has stored is kept",
        )

    def release(self) -> None:
        """Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_being_written(folder: Path) -> bool:
    """Does a process hold this folder's lock? A folder that can't be asked is not written here."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
