"""What does a node see in its file system that the host does not?

Its own sysfs, /dev/shm, /etc/hosts, /etc/resolv.conf and name-service order. The files come from
a tmpfs that no path leads to, bound over the host's; nothing is written to the host's disk.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.syscalls import MountFlag, mount, umount

_GUARDED = MountFlag.NOSUID | MountFlag.NODEV
HINT_MOUNT = "the kernel refused a mount in a namespace of its own; is AppArmor or SELinux denying?"
MIN_SHM_BYTES = 64 << 20


def shm_bytes_per_node(num_nodes: int) -> int:
    """How large may a node's /dev/shm grow? Its share of half the memory; at least 64 MiB.

    Half the memory is the kernel's default for one machine. It is a limit, not a reservation.
    """
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(MIN_SHM_BYTES, memory_bytes // 2 // num_nodes)


def furnish_node(hosts: Mapping[str, str], shm_bytes: int) -> tuple[str, ...]:
    """Give the current mount namespace a node's files; says what could not be had.

    `hosts` maps names to addresses. The caller is in the node's network namespace already: sysfs
    shows the network namespace of whoever mounts it.
    """
    warnings = _mount_sysfs()
    files = {
        "/etc/hosts": hosts_text(hosts),
        "/etc/resolv.conf": "",
        "/etc/nsswitch.conf": nsswitch_text(_read_or_empty("/etc/nsswitch.conf")),
    }
    with building("mount the node's /dev/shm", HINT_MOUNT):
        mount("tmpfs", "/dev/shm", "tmpfs", _GUARDED, "mode=700,size=1m")
        for target, text in files.items():
            warnings += _cover(target, text)
        umount("/dev/shm")
        mount("tmpfs", "/dev/shm", "tmpfs", _GUARDED, f"mode=1777,size={shm_bytes}")
    return warnings


def hosts_text(hosts: Mapping[str, str]) -> str:
    """What does /etc/hosts of a node say?"""
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in hosts.items())]
    return "\n".join(lines) + "\n"


def nsswitch_text(host_text: str) -> str:
    """Which order of name services leaves only /etc/hosts and DNS?

    Modules such as nss-resolve ask the host's daemon over a socket in the file system: it knows
    no node's name, and its answer may end the search.
    """
    kept = [line for line in host_text.splitlines() if not line.lstrip().startswith("hosts:")]
    return "\n".join([*kept, "hosts: files dns"]) + "\n"


def _mount_sysfs() -> tuple[str, ...]:
    """Mount sysfs again, so that /sys/class/net shows this node's NICs, and keep the cgroups."""
    cgroups = None
    with suppress(OSError):
        cgroups = os.open("/sys/fs/cgroup", os.O_PATH | os.O_DIRECTORY)
    try:
        flags = _GUARDED | MountFlag.NOEXEC
        mount("sysfs", "/sys", "sysfs", flags)
        mount("sysfs", "/sys", None, flags | MountFlag.REMOUNT | MountFlag.BIND | MountFlag.RDONLY)
    except OSError as error:
        return (f"nodes see the host's NICs in /sys: {error}",)
    else:
        if cgroups is not None:
            with suppress(OSError):
                mount(
                    f"/proc/self/fd/{cgroups}",
                    "/sys/fs/cgroup",
                    None,
                    MountFlag.BIND | MountFlag.REC,
                )
        return ()
    finally:
        if cgroups is not None:
            os.close(cgroups)


def _cover(target: str, text: str) -> tuple[str, ...]:
    """Bind a file with this text over `target`, which must exist."""
    if not Path(target).exists():
        return () if not text else (f"{target} does not exist, so nodes have none",)
    source = Path("/dev/shm") / Path(target).name
    source.write_text(text)
    source.chmod(0o644)
    mount(str(source), target, None, MountFlag.BIND)
    return ()


def _read_or_empty(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
