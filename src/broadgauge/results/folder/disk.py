"""How does a byte get onto the disk, and what is said when it can't?

Every write of a run folder passes through here, so that tests can end the process at each one.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broadgauge.specs.errors import RunFolderError
from broadgauge.wording.file_kinds import special_kind

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Of all that is made here: others must not read what scripts and errors say of their user."""
PART = ".part"
"""The end of the name of a file that is not whole yet."""

_NOT_ALLOWED = "check the folder's owner and permissions, or choose another with --runs-folder"
_HINTS = {
    errno.ENOSPC: "free some space, then go on with --resume",
    errno.EDQUOT: "your disk quota is used up: free some space, then go on with --resume",
    errno.EROFS: "the file system is read-only: choose another place with --runs-folder",
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.ENOENT: "was the folder moved or removed?",
    errno.ELOOP: "symbolic links are not followed inside a run folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "a shorter name or folder",
    errno.EIO: "the disk failed: look at the kernel's log (dmesg)",
}


@contextmanager
def telling(what: str, path: Path) -> Iterator[None]:
    """OSError becomes a RunFolderError that names the place: `can't write …/records.jsonl: …`."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise RunFolderError(
            f"can't {what} {path}: {reason}", hint=_HINTS.get(error.errno or 0)
        ) from error


def read_whole(path: Path, *, flags: int = 0) -> bytes:
    """All bytes of a file. Raises OSError; RunFolderError for a FIFO or a device, which may have
    no end."""
    kind = special_kind(path.stat().st_mode)
    if kind is not None:
        raise RunFolderError(f"{path} is {kind}, no file", hint="was the folder made by hand?")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | flags)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def write_all(descriptor: int, data: bytes) -> None:
    """A write may take a part only; this takes all of it or raises."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(path: Path) -> None:
    """A new or renamed file is there after a power failure only when its folder is synced."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes) -> None:
    """The file is there with all its bytes, synced, or not at all."""
    part = path.with_name(path.name + PART)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        descriptor = os.open(part, flags, PRIVATE_FILE)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(path)
        sync_folder(path.parent)
    except BaseException:
        with _quiet():
            part.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Gone, or it was not there; what can't be removed now is removed on resume."""
    with _quiet():
        path.unlink(missing_ok=True)


def check_free_space(path: Path, needed_bytes: int) -> None:
    """Is there room to begin? Raises RunFolderError with the figures."""
    with telling("look at the free space of", path):
        free_bytes = shutil.disk_usage(path).free
    if free_bytes < needed_bytes:
        raise RunFolderError(
            f"{path} has {free_bytes / 1e6:.1f} MB free, "
            f"and a run needs {needed_bytes / 1e6:.0f} MB",
            hint="free some space, or choose another place with --runs-folder",
        )


@contextmanager
def _quiet() -> Iterator[None]:
    try:
        yield
    except OSError:
        return
