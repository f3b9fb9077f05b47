"""What of an emulated storage outlives a namespace, and who takes it away?

A scratch folder on a disk, and block cgroups. The guard makes them before any namespace is entered
and removes them after all processes are gone. Where the guard itself is killed they stay, and the
next launch removes them: each folder holds a file that its guard has locked, and one that nobody
locks is left over.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.emulated.errors import EmulationError, building
from broadgauge.agent.emulated.storage.throttle import (
    DiskRates,
    find_block_groups,
    remove_group,
    whole_disk_of,
)
from broadgauge.agent.emulated.storage.tools import missing_for
from broadgauge.messages.emulated_storage import StoragePlan

_PREFIX = "broadgauge-storage-"
_LOCK = "lock"
_GROUPS = "groups"
"""A file with the paths of the block cgroups, one a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPart:
    """What the nodes' storages stand on."""

    scratch: Path
    """Empty at the start, on a disk; of the user's ids."""
    groups: tuple[Path, ...]
    """The block cgroup of each node; empty: no disk is throttled."""


@contextmanager
def host_part(plans: Sequence[StoragePlan], num_nodes: int) -> Iterator[HostPart | None]:
    """Made for the `with` block and removed after it. None: there is no storage to emulate.

    Raises EmulationError.
    """
    if not plans:
        yield None
        return
    _refuse_missing(plans)
    parent = Path(os.environ.get("TMPDIR") or "/var/tmp")
    _remove_left_over(parent)
    with building(f"make a scratch folder in {parent}", "TMPDIR=/folder names another"):
        unlocked = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent))
        lock = (unlocked / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        scratch = unlocked.rename(parent / unlocked.name.removeprefix("."))
    try:
        yield HostPart(scratch=scratch, groups=_make_groups(plans, num_nodes, scratch))
    finally:
        _remove(scratch)
        lock.close()


def _make_groups(plans: Sequence[StoragePlan], num_nodes: int, scratch: Path) -> tuple[Path, ...]:
    """One a node, so that each node's disk has the rates that are set."""
    wanted = {
        DiskRates(
            read=_bytes_per_s(plan.read_gbyte_per_s), write=_bytes_per_s(plan.write_gbyte_per_s)
        )
        for plan in plans
        if plan.kind == "disk"
    } - {DiskRates(read=None, write=None)}
    if not wanted:
        return ()
    if len(wanted) > 1:
        raise EmulationError(
            "throttle a disk",
            "two storages of one launch give it different rates",
            error_number=None,
            hint="the scratch folder's disk is one: give both the same rates",
        )
    (rates,) = wanted
    found, device = find_block_groups(), whole_disk_of(scratch)
    mark = f"{_PREFIX}{secrets.token_hex(4)}"
    names = [f"{mark}.node{node}" for node in range(num_nodes)]
    (scratch / _GROUPS).write_text("".join(f"{found.folder / name}\n" for name in names))
    return tuple(found.make(name, device, rates) for name in names)


def _refuse_missing(plans: Sequence[StoragePlan]) -> None:
    lacking = missing_for(plans)
    if lacking:
        raise EmulationError(
            "emulate a storage",
            "; ".join(what for what, _ in lacking),
            error_number=None,
            hint="; ".join(dict.fromkeys(fix for _, fix in lacking)),
        )


def _remove_left_over(parent: Path) -> None:
    """What killed guards have left here, of this user's."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            lock = (folder / _LOCK).open("r+")
        except OSError:  # another user's, or not whole yet
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            _remove(folder)


def _remove(scratch: Path) -> None:
    groups = scratch / _GROUPS
    if groups.is_file():
        for line in groups.read_text().splitlines():
            remove_group(Path(line))
    shutil.rmtree(scratch, ignore_errors=True)


def _bytes_per_s(gbyte_per_s: float | None) -> int | None:
    return None if gbyte_per_s is None else round(gbyte_per_s * 1e9)
