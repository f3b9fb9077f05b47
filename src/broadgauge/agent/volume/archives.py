"""What of an archive is unpacked? Plain files and folders below its own; anything else ends it.

Owners, rights and times are left out: the volume's are the pod's. tarfile's own filters came with
later patches of Python 3.10, so each member is written here.
"""

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path
from typing import IO

from broadgauge.agent.volume.inside import path_inside
from broadgauge.agent.volume.telling import LastingError

ZIP = ".zip"
ENDINGS = (ZIP, ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MEMBER = "the archive's member"
_ITSELF = frozenset({".", "./", ""})
"""`tar --create --directory F .` begins with it."""


def is_archive(name: str) -> bool:
    """By its name: a model's file may be a zip inside, and stay one."""
    return name.lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path) -> None:
    """Raises LastingError and OSError."""
    try:
        members = _of_zip(path) if path.name.lower().endswith(ZIP) else _of_tar(path)
        for name, content in members:
            if name in _ITSELF:
                continue
            target = path_inside(folder, name, _MEMBER)
            if content is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)
    except (
        *(tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError),
        *(RuntimeError, NotImplementedError, FileExistsError, NotADirectoryError),
        *(IsADirectoryError,),
    ) as error:
        raise LastingError(f"{path.name} can't be unpacked: {error}") from error


def _of_tar(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Each member's name and content; None: a folder."""
    with tarfile.open(path) as archive:
        for member in archive:
            if not (member.isfile() or member.isdir()):
                raise LastingError(
                    f"{_MEMBER} {member.name!r} is a link or device: nothing of it is kept"
                )
            yield member.name, archive.extractfile(member)


def _of_zip(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            yield member.filename, None if member.is_dir() else archive.open(member)
