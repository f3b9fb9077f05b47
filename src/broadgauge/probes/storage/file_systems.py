"""On which file system is a folder, and what does the kernel count of it?"""

import os
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.hardware.mounts import MOUNTS, read_mounts

MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
"""Their pages are the file: nothing is ever read from elsewhere."""
COUNTED = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs"})
"""On a block device, uncompressed as a rule: what was read of it is in `read_bytes`, byte for byte.
"""


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


def file_system_of(folder: Path, mounts: Path = Path(MOUNTS)) -> FileSystem | None:
    """The one that the folder is on; None: the kernel's list has none for it.

    Of several mounts on one place the last counts, as for the kernel.
    """
    path = os.path.realpath(folder)
    found: FileSystem | None = None
    for mount in read_mounts(mounts.read_text(errors="surrogateescape").split("\n")):
        if found is not None and len(mount.place) < len(found.mounted_at):
            continue
        if path == mount.place or path.startswith(mount.place.rstrip("/") + "/"):
            found = FileSystem(kind=mount.kind, source=mount.source, mounted_at=mount.place)
    return found
