"""What is mounted where? As the kernel lists it, for whoever asks.

Source: proc_pid_mountinfo(5).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MOUNTS = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")
_PLACE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of the list. Of several on one place the last counts."""

    place: str
    kind: str
    """`ext4`, `tmpfs`, `nfs4`, `fuse.rclone`, …"""
    source: str
    """`/dev/nvme0n1p1`, `server:/export`, …"""
    options: str
    """Of the file system, not of this mount of it: `rw,size=65536k`."""


def read_mounts(lines: Iterable[str]) -> Iterator[Mount]:
    """In the kernel's order; a line that is cut off is left out."""
    for line in lines:
        mount, _, rest = line.partition(" - ")
        fields, (kind, source, options, *_) = mount.split(" "), (*rest.split(" "), "", "", "")
        if len(fields) > _PLACE and kind:
            place = _plain(fields[_PLACE])
            yield Mount(place=place, kind=kind, source=_plain(source), options=options)


def _plain(text: str) -> str:
    """Blanks and line feeds stand there as octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
