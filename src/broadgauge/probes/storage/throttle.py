"""How is a disk made slower for the ranks of one node, and for nobody else?

By a block cgroup with a rate for the whole disk, which the rank itself makes or joins before it
works and leaves after: that needs root on the node and nothing of its agent or platform. Ranks of
emulated nodes give up root's capabilities: their cluster has a group for theirs. Ranks of a node
share a group by its name; the last one out removes it.

Only the hierarchy of cgroup v1 (`blkio`) is used; where v2 owns `io` the throttle is refused: there
a process that changes its group leaves its limits of memory and cores, too.
Writes to the page cache are not limited before they are written back, as on a real disk. Nor is
what v1's kernel writes back by itself, once more waits in memory than it likes: only reads, direct
requests and fsync are (measured here: 520 MB/s under a limit of 100, of 6.3 GB in one go).
Source: Linux, Documentation/admin-guide: cgroup-v1/blkio-controller.rst; cgroup-v2.rst, Writeback.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from broadgauge.messages.block_groups import (
    PREFIX,
    block_hierarchy,
    cluster_group,
    join_group,
    locked,
    own_group,
    remove_left,
)
from broadgauge.messages.storage import StorageTask
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage.own_folder import refuse_missing
from broadgauge.probes.trial import RefusedError

_RATES = "blkio.throttle.{}_bps_device"


@contextmanager
def throttled_as_told(task: StorageTask, identity: RankIdentity) -> Iterator[None]:
    """This rank and its children, where the task has a throttle.

    Raises RefusedError, with the storage's name, where that can't be.
    """
    told = task.throttle
    with ExitStack() as held:
        if told is not None:
            refuse_missing(Path(task.folder))
            group = throttled(
                Path(task.folder),
                _owner(identity),
                read_byte_per_s=told.read_byte_per_s,
                write_byte_per_s=told.write_byte_per_s,
            )
            try:
                held.enter_context(group)
            except RefusedError as error:
                raise RefusedError(f"storage `{told.storage}` {error}") from None
        yield


def _owner(identity: RankIdentity) -> str:
    """This launch's ranks of this node, among all that may run on the machine.

    Launches of one network namespace have ports of their own, and emulated nodes a namespace each.
    """
    namespace = Path("/proc/self/ns/net").stat().st_ino
    return f"{namespace}-{identity.master_addr}-{identity.master_port}-node{identity.node}"


@contextmanager
def throttled(
    folder: Path, owner: str, *, read_byte_per_s: int, write_byte_per_s: int
) -> Iterator[Path]:
    """The group that this process is in meanwhile.

    `owner`: names the node and whose it is, alike on all its ranks. Raises RefusedError, whose
    words follow the storage's name, where the disk below the folder can't be throttled.
    """
    disk = disk_of(folder)
    root = block_hierarchy()
    if root is None:
        raise RefusedError(
            "can't be throttled: cgroup v1 has no `blkio` here, and `io.max` of v2 is not used"
        )
    group, former = _place_of_groups(root) / f"{PREFIX}{owner}", own_group(root)
    if not (former / "cgroup.procs").exists():
        raise RefusedError(f"can't be throttled: this process's block cgroup is not below {root}")
    try:
        with locked(root):
            remove_left(root)
            group.mkdir(exist_ok=True)
            for access, rate in (("read", read_byte_per_s), ("write", write_byte_per_s)):
                (group / _RATES.format(access)).write_text(f"{disk} {rate}")
            join_group(group)
    except OSError as error:
        with suppress(OSError), locked(root):  # no other rank is between making and joining it
            group.rmdir()
        raise RefusedError(f"can't be throttled: {_why_not(error, group)}") from None
    try:
        yield group
    finally:
        with locked(root):
            join_group(former)
            with suppress(OSError):  # other ranks of the node are still in it
                group.rmdir()


def disk_of(folder: Path) -> str:
    """`259:0`, the number of the whole disk that holds the folder. Raises RefusedError."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    block = Path("/sys/dev/block", number)
    if os.major(device) == 0 or not block.exists():
        raise RefusedError(f"can't be throttled: {folder} is on no block device")
    block = block.resolve()
    if (block / "partition").exists():
        block = block.parent
    if (block / "dm").exists():
        raise RefusedError(f"can't be throttled: {folder} is on a mapped device")
    return (block / "dev").read_text().strip()


def _place_of_groups(root: Path) -> Path:
    """The root, or what an emulated cluster has for its ranks."""
    of_cluster = cluster_group(root)
    return of_cluster if of_cluster.is_dir() else root


def _why_not(error: OSError, group: Path) -> str:
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{error.strerror}: {group}"
    return f"this rank may make no group in {group.parent}, which takes root with its capabilities"
