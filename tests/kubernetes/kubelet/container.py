"""How does a forked process become a container: root, mounts, limits, user, capabilities?

Everything runs in the container's first process, between its fork and its exec. The root is an
overlay (copy on write in memory) over this machine's root or over an image's folder, so nothing
that a container writes outside its volumes reaches the machine.
"""

import ctypes
import os
import resource
import stat
from pathlib import Path
from typing import Any

from broadgauge.agent.emulated.syscalls import (
    PR_CAPBSET_DROP,
    PR_CAPBSET_READ,
    PR_SET_NO_NEW_PRIVS,
    CloneFlag,
    MountFlag,
    last_capability,
    mount,
    prctl,
    sethostname,
    setns,
    umount,
    unshare,
)

Json = dict[str, Any]
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_DETACH = 2
_OLD = "/.host"
_GUARDED = MountFlag.NOSUID | MountFlag.NODEV | MountFlag.NOEXEC
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
            "tty": (5, 0)}  # fmt: skip
"""Source: Open Containers runtime specification, "Default Devices"; devices.txt of Linux."""


def become_container(order: Json, net_fd: int) -> None:
    """Become what `order` says and run its program; returns only by an exception.

    Raises OSError, with the path or the call in words.
    """
    for procs in order["cgroups"]:
        Path(procs).write_text("0")
    setns(net_fd, CloneFlag.NEWNET)
    unshare(CloneFlag.NEWNS | CloneFlag.NEWUTS | CloneFlag.NEWIPC)
    sethostname(order["hostname"])
    mount("none", "/", None, MountFlag.REC | MountFlag.PRIVATE)
    _enter_root(order)
    _mount_kernel_files(order)
    for one in order["mounts"]:
        _bind(one["source"], one["target"], read_only=one["read_only"])
    if order["read_only_root"]:
        mount("none", "/", None, MountFlag.REMOUNT | MountFlag.BIND | MountFlag.RDONLY)
    Path(order["cwd"]).mkdir(parents=True, exist_ok=True)
    os.chdir(order["cwd"])
    umount(_OLD, _DETACH)
    if order["cores"]:
        os.sched_setaffinity(0, order["cores"])
    for name, limit in order["rlimits"].items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    os.umask(0o022)
    _become_user(order)
    _exec(order["argv"], order["env"])


def _exec(argv: list[str], env: dict[str, str]) -> None:
    try:
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError:
        where = (
            "no such file or directory" if "/" in argv[0] else "executable file not found in $PATH"
        )
    except PermissionError:
        where = "permission denied"
    raise OSError(f'exec: "{argv[0]}": {where}')


def _enter_root(order: Json) -> None:
    """Make the overlay and move into it; the machine's root stays at /.host for a while."""
    scratch = Path(order["scratch"])
    mount("tmpfs", str(scratch), "tmpfs", MountFlag.NOSUID, "mode=755")
    upper, work, merged = scratch / "upper", scratch / "work", scratch / "merged"
    for folder in (upper, work, merged):
        folder.mkdir()
    options = f"lowerdir={order['root']},upperdir={upper},workdir={work}"
    mount("overlay", str(merged), "overlay", MountFlag(0), options)
    os.chdir(merged)
    Path(_OLD.lstrip("/")).mkdir(exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    number = _PIVOT_ROOT[os.uname().machine]
    if libc.syscall(number, b".", _OLD.lstrip("/").encode()) != 0:
        raise OSError(ctypes.get_errno(), f"pivot_root: {os.strerror(ctypes.get_errno())}")
    os.chdir("/")
    for folder in order["shared_folders"]:
        _share(Path(folder))


def _share(folder: Path) -> None:
    """Let any user reach a folder of this machine, also one that lies on a mount of its own."""
    if not folder.exists() or Path(_OLD + str(folder)).stat().st_dev != Path(_OLD).stat().st_dev:
        folder.mkdir(parents=True, exist_ok=True)
        mount(_OLD + str(folder), str(folder), None, MountFlag.BIND | MountFlag.REC)
    for above in folder.parents:
        mode = above.stat().st_mode
        everyone = stat.S_IXGRP | stat.S_IXOTH  # a random user's group is root's
        if mode & everyone != everyone:
            above.chmod(stat.S_IMODE(mode) | everyone)


def _mount_kernel_files(order: Json) -> None:
    """/proc, /sys, /dev and /tmp as a container runtime mounts them."""
    for folder in ("/proc", "/sys", "/dev", "/tmp"):
        Path(folder).mkdir(mode=0o1777 if folder == "/tmp" else 0o755, exist_ok=True)
    mount("proc", "/proc", "proc", _GUARDED)
    mount("sysfs", "/sys", "sysfs", _GUARDED)
    mount(f"{_OLD}/sys/fs/cgroup", "/sys/fs/cgroup", None, MountFlag.BIND | MountFlag.REC)
    read_only = _GUARDED | MountFlag.REMOUNT | MountFlag.BIND | MountFlag.RDONLY
    mount("none", "/sys", None, read_only)
    mount("tmpfs", "/dev", "tmpfs", MountFlag.NOSUID, "mode=755,size=65536k")
    for name, (major, minor) in _DEVICES.items():
        os.mknod(f"/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
        Path(f"/dev/{name}").chmod(0o666)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path(f"/dev/{name}").symlink_to(f"/proc/self/{target}")
    for name in ("pts", "shm", "mqueue"):
        Path(f"/dev/{name}").mkdir()
    mount("devpts", "/dev/pts", "devpts", MountFlag.NOSUID | MountFlag.NOEXEC,
          "newinstance,ptmxmode=0666,mode=0620")  # fmt: skip
    Path("/dev/ptmx").symlink_to("pts/ptmx")
    mount("tmpfs", "/dev/shm", "tmpfs", _GUARDED, f"mode=1777,size={order['shm_bytes']}")


def _bind(source: str, target: str, *, read_only: bool) -> None:
    """Mount a file or folder of the machine where a container wants it; the place is made."""
    outside, place = Path(_OLD + source), Path(target)
    if outside.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    elif not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    mount(str(outside), target, None, MountFlag.BIND | MountFlag.REC)
    if read_only:
        flags = MountFlag.REMOUNT | MountFlag.BIND | MountFlag.RDONLY
        mount("none", target, None, flags)


def _become_user(order: Json) -> None:
    """Leave the capabilities that are not asked for, then take the user's ids.

    A user other than root keeps none, whatever was added: Kubernetes sets no ambient
    capabilities, and the exec clears the rest (capabilities(7)).
    """
    kept = set(order["capabilities"])
    for number in range(last_capability() + 1):
        if number not in kept and prctl(PR_CAPBSET_READ, number):
            prctl(PR_CAPBSET_DROP, number)
    os.setgroups(order["groups"])
    os.setresgid(order["gid"], order["gid"], order["gid"])
    os.setresuid(order["uid"], order["uid"], order["uid"])
    if order["no_new_privileges"]:
        prctl(PR_SET_NO_NEW_PRIVS, 1)
