"""How much of its files does a file system hold, where it compresses them?

Told by the places of their extents: one that is compressed ends where the next begins, at most. How
many blocks a file takes (`st_blocks`) does not tell it. Btrfs counts them uncompressed (measured
here, tests/probes/storage/test_held_files.py); OpenZFS says one block of a file that has just been
fsync'd, and the truth seconds later (its issues 13991 and 16463).
Source: Linux, Documentation/filesystems/fiemap.rst; include/uapi/linux/fiemap.h.
"""

import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

FIEMAP = 0xC020660B
"""FS_IOC_FIEMAP: _IOWR('f', 11, 32 bytes), on all architectures that torch runs on."""
_REQUEST, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQQQI12x")
_MOST_EXTENTS = 256
"""Asked for at once."""
_LAST, _UNKNOWN, _ENCODED, _INLINE = 0x1, 0x2, 0x8, 0x200


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A piece of a file."""

    length_bytes: int
    """Of the file."""
    place: int
    """On the device, in bytes."""
    is_compressed: bool


def held_ratio(paths: Iterable[Path]) -> float | None:
    """Of the bytes of all these files, what their file system holds at most; below 1 only where it
    has compressed them. None: it does not say, or there are none. They are on the device already:
    of what is not yet, nothing is known. Raises OSError."""
    size_bytes, extents = 0, list[Extent]()
    for path in paths:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size_bytes += os.fstat(fd).st_size
            extents += extents_of(fd)
        except OSError:  # in memory, over a network: no extents, or nobody is told
            return None
        finally:
            os.close(fd)
    return 1 - saved_bytes(extents) / size_bytes if size_bytes else None


def saved_bytes(extents: Sequence[Extent]) -> int:
    """At least: of a compressed one, by how much the next on the device begins too early for it to
    be there in full."""
    ordered = sorted(extents, key=lambda extent: extent.place)
    return sum(
        max(0, extent.length_bytes - (following.place - extent.place))
        for extent, following in pairwise(ordered)
        if extent.is_compressed
    )


def extents_of(fd: int) -> Iterator[Extent]:
    """Those with a place of their own: neither within metadata nor yet to be written. Raises
    OSError."""
    start, is_last = 0, False
    while not is_last:
        request = _REQUEST.pack(start, (1 << 64) - 1 - start, 0, 0, _MOST_EXTENTS, 0)
        answer = bytearray(request + bytes(_MOST_EXTENTS * _EXTENT.size))
        fcntl.ioctl(fd, FIEMAP, answer)
        count = _REQUEST.unpack_from(answer)[3]
        is_last = count == 0
        for number in range(count):
            told = _EXTENT.unpack_from(answer, _REQUEST.size + number * _EXTENT.size)
            logical, place, length, *_, flags = told
            start, is_last = logical + length, bool(flags & _LAST)
            if not flags & (_UNKNOWN | _INLINE):
                yield Extent(length_bytes=length, place=place, is_compressed=bool(flags & _ENCODED))
