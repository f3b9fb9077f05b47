"""Which group owns a volume? A pod's fsGroup, as a kubelet gives it.

Source: Kubernetes, pkg/volume/volume_linux.go (SetVolumeOwnership, requiresPermissionChange).
"""

import os
import stat
from pathlib import Path

ON_ROOT_MISMATCH = "OnRootMismatch"
_READ_WRITE = 0o660
_ENTER = 0o110


def give_group(folder: Path, group: int, policy: str | None) -> None:
    """All of it, unless the policy is OnRootMismatch and its top folder is as it should be."""
    if policy == ON_ROOT_MISMATCH and _is_given(folder, group):
        return
    for path in (folder, *folder.rglob("*")):
        found = path.lstat()
        os.lchown(path, -1, group)
        if stat.S_ISLNK(found.st_mode):
            continue
        more = _READ_WRITE
        if stat.S_ISDIR(found.st_mode):
            more |= stat.S_ISGID | _ENTER
        path.chmod(stat.S_IMODE(found.st_mode) | more)


def _is_given(folder: Path, group: int) -> bool:
    found = folder.stat()
    needed = _READ_WRITE | _ENTER | stat.S_ISGID
    return found.st_gid == group and stat.S_IMODE(found.st_mode) & needed == needed
