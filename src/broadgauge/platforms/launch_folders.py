"""Where on this machine do launches write their logs, and where do their commands run?

A request for a launch names neither: it may be read on another machine. A platform whose ranks are
processes of this one is made with these folders.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadgauge.specs.case import Arm
from broadgauge.specs.errors import RunFolderError


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFolders:
    """Of one run."""

    logs: Path
    """`<launch_id>.rank<n>.log` and all else that a launch leaves are written here."""
    working: Path
    """Where the user's command runs and relative paths start: the experiment file's folder."""
    baseline: Path | None = None
    """The baseline's own working folder; None: there is no baseline."""

    def log_stem(self, launch_id: str) -> str:
        """What the absolute paths of this launch's logs begin with."""
        return str(self.logs.absolute() / launch_id)

    def working_of(self, arm: Arm) -> Path:
        """Where do this arm's commands run?"""
        if arm == "candidate":
            return self.working
        assert self.baseline is not None, "a baseline has a working folder"
        return self.baseline


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises RunFolderError in place of OSError."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise RunFolderError(
            f"{path} can't be written: {error.strerror or error}",
            hint="free some space, then `broadgauge run --resume` goes on" if is_full else None,
        ) from error


def private(path: str, flags: int) -> int:
    """An opener of files that others must not read, whatever the umask."""
    return os.open(path, flags, 0o600)
