"""Which block cgroups (v1) are Broadgauge's, and who may make and remove them?

All is done under a lock of the hierarchy's root: a group of ours without processes is then what a
killed run left, and whoever comes next removes it. In the root only a process with root's
capabilities makes a group; in a group that root has made, root's ranks without them do, too.
Source: Linux, Documentation/admin-guide/cgroup-v1/blkio-controller.rst; cgroups(7).
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "broadgauge-throttle-"


def block_hierarchy() -> Path | None:
    """Where its groups are; None: this system has none."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "blkio" in options.split(","):
            return Path(where)
    return None


def own_group(root: Path) -> Path:
    """That this process is in, or the root."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if "blkio" in controllers.split(","):
            return root / group.lstrip("/")
    return root


def cluster_group(root: Path) -> Path:
    """In which ranks of the emulated cluster that this process is in make theirs; it need not be
    there. A cluster is a PID namespace."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return root / f"{PREFIX}cluster-{namespace}"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Raises OSError."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def remove_left(root: Path) -> None:
    """All groups of ours that nobody is in. Call it with the lock."""
    for group in root.glob(f"{PREFIX}*"):
        for inner in (*group.glob(f"{PREFIX}*"), group):
            with suppress(OSError):  # the kernel keeps one that has processes, or groups
                inner.rmdir()


def join_group(group: Path) -> None:
    """With all threads of this process. Raises OSError."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
