"""How much memory may this process lock, share and use, and how many CPUs?

Source: proc(5) (limits, status); cgroups(7); Linux, Documentation/admin-guide/
cgroup-v2.rst (memory.max, cpu.max) and cgroup-v1/memory.rst.
"""

import os
import re
from contextlib import suppress
from pathlib import PurePosixPath

from broadgauge.agent.hardware.mounts import MOUNTS, read_mounts
from broadgauge.agent.hardware.tree import Tree, count_of_list, to_number
from broadgauge.messages.hardware import LimitFacts

ENOUGH_MEMLOCK_BYTES = 2**30
"""RDMA registers a few megabytes for each channel and peer; what is set on purpose is unlimited or
gigabytes, what is left at the default 64 KiB or 8 MiB."""
_CGROUPS = "/sys/fs/cgroup"
_SIZE = re.compile(r"(?:^|,)size=(\d{1,15})([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_NO_LIMIT_BYTES = 2**62
"""Version 1 says "none" as the largest multiple of a page in 63 bits."""
_LIMIT = re.compile(r"^(Max [a-z ]+?) {2,}(\S+) +(\S+)")


def read_limits(tree: Tree) -> LimitFacts:
    """Of this process."""
    told = dict(_limit_lines(tree))
    soft, hard = told.get("Max locked memory", (None, None))
    has_shm, size, free = _read_shm(tree)
    groups = _groups(tree)
    return LimitFacts(
        memlock_soft_bytes=to_number(soft),
        memlock_hard_bytes=to_number(hard),
        is_memlock_known=soft is not None and (soft == "unlimited" or soft.isdecimal()),
        open_files_soft=to_number(told.get("Max open files", (None, None))[0]),
        has_shm=has_shm,
        shm_size_bytes=size,
        shm_free_bytes=free,
        memory_limit_bytes=_memory_limit(tree, groups),
        cpu_limit_millicores=_cpu_limit(tree, groups),
        cpus_online=count_of_list(tree.text("/sys/devices/system/cpu/online")),
        cpus_allowed=count_of_list(status(tree).get("Cpus_allowed_list")),
    )


def status(tree: Tree) -> dict[str, str]:
    """/proc/self/status, by name."""
    pairs = (line.partition(":") for line in tree.lines("/proc/self/status"))
    return {name: value.strip() for name, _, value in pairs}


def _limit_lines(tree: Tree) -> list[tuple[str, tuple[str, str]]]:
    matches = map(_LIMIT.match, tree.lines("/proc/self/limits"))
    return [(match[1], (match[2], match[3])) for match in matches if match is not None]


def _read_shm(tree: Tree) -> tuple[bool | None, int | None, int | None]:
    """Mounted? Its size and what is free of it; the last mount is the one that counts."""
    lines = tree.lines(MOUNTS)
    if not lines:
        return None, None, None
    own = [mount for mount in read_mounts(lines) if mount.place == "/dev/shm"]
    if not own:
        return False, None, None
    match = _SIZE.search(own[-1].options)
    size = int(match[1]) * _UNITS[match[2].lower()] if match else None
    free = None
    if tree.is_live:
        with suppress(OSError):
            told = os.statvfs("/dev/shm")
            size, free = told.f_blocks * told.f_frsize, told.f_bavail * told.f_frsize
    return True, size, free


def _groups(tree: Tree) -> dict[str, str]:
    """Controller → this process's control group; `` is version 2's.

    In a container with a namespace of its own the path is `/`, and else one of the host, which is
    not there: the mount's own folder is then the container's.
    """
    found: dict[str, str] = {}
    for line in tree.lines("/proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number.isdecimal() and path.startswith("/"):
            found |= dict.fromkeys(controllers.split(","), path)
    return found


def _folders(path: str) -> list[str]:
    """The group and those above it: the tightest limit is the one that holds."""
    return [str(each) for each in (PurePosixPath(path), *PurePosixPath(path).parents)]


def _memory_limit(tree: Tree, groups: dict[str, str]) -> int | None:
    found = [
        tree.number(_CGROUPS, prefix, folder, name)
        for controller, prefix, name in (
            ("", "", "memory.max"),
            ("", "unified", "memory.max"),
            ("memory", "memory", "memory.limit_in_bytes"),
        )
        for folder in _folders(groups.get(controller, "/"))
    ]
    limits = [limit for limit in found if limit is not None and 0 < limit < _NO_LIMIT_BYTES]
    return min(limits, default=None)


def _cpu_limit(tree: Tree, groups: dict[str, str]) -> int | None:
    found: list[int] = []
    for prefix in ("", "unified"):
        for folder in _folders(groups.get("", "/")):
            quota, _, period = (tree.text(_CGROUPS, prefix, folder, "cpu.max") or "").partition(" ")
            found += _millicores(to_number(quota), to_number(period))
    for prefix in ("cpu", "cpu,cpuacct"):
        for folder in _folders(groups.get("cpu", "/")):
            at = (_CGROUPS, prefix, folder)
            quota_us = tree.number(*at, "cpu.cfs_quota_us")
            found += _millicores(quota_us, tree.number(*at, "cpu.cfs_period_us"))
    return min(found, default=None)


def _millicores(quota: int | None, period: int | None) -> list[int]:
    if quota is None or period is None or quota <= 0 or period <= 0:
        return []
    return [quota * 1000 // period]
