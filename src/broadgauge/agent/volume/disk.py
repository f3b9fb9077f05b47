"""What of a folder is on the disk, too, when another node or a later pod looks at it?"""

import errno
import os
from pathlib import Path

_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EISDIR, errno.EBADF)
"""Of a folder where the file system knows nothing like it."""


def write_synced(path: Path, text: str) -> None:
    """Raises OSError."""
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_below(folder: Path) -> None:
    """All of it, before something says that it is there. Raises OSError, also that of an earlier
    write which the kernel tells only now."""
    for place, _, names in os.walk(folder):
        for name in names:
            _sync(Path(place, name))
        _sync(Path(place))


def _sync(path: Path) -> None:
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        return
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NO_SYNC or path.is_file():
            raise
    finally:
        os.close(number)
