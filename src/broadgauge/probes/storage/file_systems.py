"""On which file system is a folder, and what does the kernel count of it?"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
"""Their pages are the file: nothing is ever read from elsewhere."""
COUNTED = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs"})
"""On a block device, uncompressed as a rule: what was read of it is in `read_bytes`, byte for byte.
"""
MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    kind: str
    """`ext4`, `tmpfs`, `nfs4`, `fuse.rclone`, …"""
    source: str
    """`/dev/nvme0n1p1`, `server:/export`, …"""
    mounted_at: str

    @property
    def is_memory(self) -> bool:
        return self.kind in MEMORY

    @property
    def is_counted(self) -> bool:
        return self.kind in COUNTED


def file_system_of(folder: Path, mounts: Path = MOUNTS) -> FileSystem | None:
    """The one that the folder is on; None: the kernel's list has none for it.

    Of several mounts on one place the last counts, as for the kernel. Source:
    proc_pid_mountinfo(5).
    """
    path = os.path.realpath(folder)
    found: FileSystem | None = None
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        fields, _, rest = line.partition(" - ")
        place = _plain(fields.split(" ")[4])
        if found is not None and len(place) < len(found.mounted_at):
            continue
        if path == place or path.startswith(place.rstrip("/") + "/"):
            kind, source, *_ = rest.split(" ")
            found = FileSystem(kind=kind, source=_plain(source), mounted_at=place)
    return found


def _plain(text: str) -> str:
    """Blanks and line feeds stand there as octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
