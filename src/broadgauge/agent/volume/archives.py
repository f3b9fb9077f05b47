"""What of an archive is unpacked? Plain files and folders below its own; anything else ends it.

It must be whole to its end: the checksums of its members and of its compression, and a tar's block
of zeros, without which it may be cut between two members.

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
_PIECE_BYTES = 1 << 20
_MEMBER = "the archive's member"
_ITSELF = frozenset({".", "./", ""})
"""`tar --create --directory F .` begins with it."""


def is_archive(name: str) -> bool:
    """By its name: a model's file may be a zip inside, and stay one."""
    return name.lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path) -> None:
    """Raises LastingError and OSError."""
    try:
        is_zip = path.name.lower().endswith(ZIP)
        members = _of_zip(path) if is_zip else _of_tar(path, folder)
        for name, content in members:
            if name in _ITSELF:
                continue
            target = path_inside(folder, name, _MEMBER)
            if content is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file, _PIECE_BYTES)
    except (
        *(tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError),
        *(RuntimeError, NotImplementedError, FileExistsError, NotADirectoryError),
        *(IsADirectoryError,),
    ) as error:
        raise LastingError(f"{path.name} can't be unpacked: {error}") from error
    except OSError as error:
        if error.errno is not None:  # the volume's: gzip's and bz2's own have no number
            raise
        raise LastingError(f"{path.name} can't be unpacked: {error}") from error


class _Header(tarfile.TarInfo):
    """Without its block of zeros, or with a damaged header, tarfile takes it for ended."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        """Raises tarfile's errors."""
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            raise tarfile.ReadError(
                f"it is cut, or no header is where one should be: {error}"
            ) from None


def _of_tar(path: Path, folder: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Each member's name and content; None: a folder."""
    with tarfile.open(path, tarinfo=_Header) as archive:
        for member in archive:
            if member.islnk():
                yield member.name, _linked(member, folder)
            elif member.isfile() or member.isdir():
                yield member.name, archive.extractfile(member)
            else:
                raise LastingError(
                    f"{_MEMBER} {member.name!r} is a link or device: nothing of it is kept"
                )
        assert archive.fileobj is not None
        while archive.fileobj.read(_PIECE_BYTES):  # the compression's checksum is at its end
            pass


def _linked(member: tarfile.TarInfo, folder: Path) -> IO[bytes]:
    """Of a hard link: a member that has come before. Raises LastingError."""
    there = path_inside(folder, member.linkname, _MEMBER)
    if there == path_inside(folder, member.name, _MEMBER) or not there.is_file():
        raise LastingError(
            f"{_MEMBER} {member.name!r} is a link to {member.linkname!r}, which is no member "
            "before it: nothing of it is kept"
        )
    return there.open("rb")


def _of_zip(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            yield member.filename, None if member.is_dir() else archive.open(member)
