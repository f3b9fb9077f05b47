"""Where can a test go past the page cache? Not in every temporary folder: many are a tmpfs."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broadgauge.probes.storage.file_systems import file_system_of


@contextmanager
def direct_folder(*places: Path) -> Iterator[Path]:
    """An empty folder below the first of these that is no memory and takes O_DIRECT, removed at the
    end; skips where none does."""
    place = next(filter(takes_direct, places), None)
    if place is None:
        pytest.skip(f"no file system of {', '.join(map(str, places))} takes O_DIRECT")
    with tempfile.TemporaryDirectory(prefix=".direct-", dir=place) as folder:
        yield Path(folder)


def takes_direct(place: Path) -> bool:
    """A tmpfs of Linux 6.6 and newer takes it, and goes past nothing."""
    file_system = file_system_of(place)
    if file_system is not None and file_system.is_memory:
        return False
    try:
        with tempfile.NamedTemporaryFile(dir=place) as file:
            os.close(os.open(file.name, os.O_RDWR | os.O_DIRECT))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EACCES, errno.EROFS):
            raise
        return False
    return True
