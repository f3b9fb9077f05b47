"""Where may a rank write on a user's storage? In a folder that Broadgauge made, and nowhere else.

The folder has a marker, which is locked while a rank works in it: what a killed run left is removed
by the next one, what another run works with is left alone, and a folder without a marker is
somebody else's.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from broadgauge.probes.trial import RefusedError

NAME = "broadgauge-storage"
MARKER = ".made-by-broadgauge"
SPARE_BYTES = 64 << 20
"""Left free beside what is written: a file system that is full to the last byte stops others."""
MOST_MAKINGS = 100
"""Each is needed only where another rank ended meanwhile."""


@contextmanager
def own_folder(storage: Path, owner: str, needed_bytes: int) -> Iterator[Path]:
    """An empty folder of this owner (`rank3`) below the storage's, removed at the end.

    `needed_bytes`: of all that share the file system. Raises RefusedError where the storage is not
    there, can't be written, is too full, or holds what we did not make.
    """
    folder = storage / NAME / owner
    with ExitStack() as held:
        with _refusing(storage):
            held.enter_context(_locked(storage, folder))
            held.callback(_remove, folder)
            _empty(folder)
            _refuse_full(storage, needed_bytes)
        yield folder


@contextmanager
def _locked(storage: Path, folder: Path) -> Iterator[None]:
    """Made, where it is not there, and held: nothing of it is touched before."""
    refuse_missing(storage)
    _refuse_foreign(folder)
    _make(folder)
    lock = os.open(folder / MARKER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(lock, folder)
        yield
    finally:
        os.close(lock)


def _make(folder: Path) -> None:
    """With the folder that all ranks share: the last one that ends may remove that between the two,
    as often as there are others. Raises OSError."""
    for _ in range(MOST_MAKINGS):
        folder.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            folder.mkdir(exist_ok=True)
            return
    raise OSError(errno.EBUSY, f"{folder.parent} is removed again and again")


def refuse_missing(storage: Path) -> None:
    """Raises RefusedError where the storage's folder is not there."""
    if not storage.is_dir():
        what = "is no folder" if storage.exists() else "is not there"
        raise RefusedError(
            f"the storage's `path` {storage} {what} on {os.uname().nodename}: make it, or mount it"
        )


def _refuse_foreign(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RefusedError(f"{folder} is no folder that Broadgauge made: remove it, if it is yours")
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise RefusedError(
            f"{folder} is not empty, and Broadgauge did not make it: another `path`, or remove it "
            "yourself"
        )


def _lock(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RefusedError(
            f"another run works in {folder}: wait for it, or another `path`"
        ) from None


def _empty(folder: Path) -> None:
    """Of what a killed run left."""
    for path in folder.iterdir():
        if path.name != MARKER:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _remove(folder: Path) -> None:
    """The marker last: until then what is in there is known to be ours."""
    if (folder / MARKER).exists():
        _empty(folder)
        (folder / MARKER).unlink()
        folder.rmdir()
    try:
        folder.parent.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT, errno.EEXIST):
            raise


def _refuse_full(storage: Path, needed_bytes: int) -> None:
    status = os.statvfs(storage)
    if not status.f_blocks:
        return  # ramfs, and mounts of buckets, say no size: nobody knows what is free
    free_bytes = status.f_bavail * status.f_frsize
    if needed_bytes + SPARE_BYTES > free_bytes:
        raise RefusedError(
            f"{storage} has {free_bytes / 1e9:.2f} GB free, and {needed_bytes / 1e9:.2f} GB are to "
            "be written: fewer or smaller files, or another `path`"
        )


@contextmanager
def _refusing(storage: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RefusedError(f"nothing can be written to {storage}: {error.strerror}") from error
