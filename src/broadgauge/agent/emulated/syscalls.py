"""Which Linux calls does an emulated cluster need that Python 3.11 has no function for?

Thin wrappers over libc by ctypes: each raises OSError with the errno and the call in words.
Source of the constants: linux/sched.h, linux/mount.h, linux/prctl.h and linux/capability.h.
"""

import ctypes
import os
from enum import IntFlag
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


class CloneFlag(IntFlag):
    """Which namespace is meant? (linux/sched.h)"""

    NEWNS = 0x00020000
    NEWUTS = 0x04000000
    NEWIPC = 0x08000000
    NEWUSER = 0x10000000
    NEWPID = 0x20000000
    NEWNET = 0x40000000


class MountFlag(IntFlag):
    """How is a file system mounted? (linux/mount.h)"""

    RDONLY = 1
    NOSUID = 2
    NODEV = 4
    NOEXEC = 8
    REMOUNT = 32
    BIND = 4096
    REC = 16384
    PRIVATE = 1 << 18


PR_SET_PDEATHSIG = 1
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21
_CAPABILITY_VERSION_3 = 0x20080522


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def unshare(flags: CloneFlag) -> None:
    """Leave the shared namespaces named by `flags` for new ones.

    With NEWPID the caller stays where it is; its next child becomes the first process.
    """
    _check(_libc.unshare(ctypes.c_int(flags)), f"unshare({flags!r})")


def setns(fd: int, kind: CloneFlag) -> None:
    """Enter the namespace that `fd` holds open; `kind` guards against the wrong descriptor."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), f"setns({fd}, {kind!r})")


def mount(
    source: str, target: str, kind: str | None, flags: MountFlag, options: str | None = None
) -> None:
    """Mount `source` at `target`; `kind` is the file system, None for binds and propagation."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        None if options is None else options.encode(),
    )
    _check(result, f"mount({source!r}, {target!r}, {kind!r}, {flags!r}, {options!r})")


def umount(target: str, flags: int = 0) -> None:
    """Take the topmost mount at `target` away."""
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), f"umount({target!r})")


def sethostname(name: str) -> None:
    """Name the current UTS namespace."""
    encoded = name.encode()
    result = _libc.sethostname(encoded, ctypes.c_size_t(len(encoded)))
    _check(result, f"sethostname({name!r})")


def prctl(option: int, argument: int = 0, second: int = 0) -> int:
    """Set or ask an attribute of this process; gives back what the kernel answers."""
    result: int = _libc.prctl(
        ctypes.c_int(option),
        ctypes.c_ulong(argument),
        ctypes.c_ulong(second),
        ctypes.c_ulong(0),
        ctypes.c_ulong(0),
    )
    if result < 0:
        _check(result, f"prctl({option}, {argument}, {second})")
    return result


def last_capability() -> int:
    """Which capability has the highest number in this kernel?"""
    return int(Path("/proc/sys/kernel/cap_last_cap").read_text())


def effective_capabilities() -> int:
    """Which capabilities does this process hold in its own user namespace? A bit mask."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    raise OSError("/proc/self/status has no CapEff line; is /proc mounted?")


def capset_none() -> None:
    """Give up every effective, permitted and inheritable capability of this process."""

    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, data), "capset(none)")


def drop_every_capability() -> None:
    """Give up every capability for good: bounding, ambient, inheritable, permitted, effective.

    The bounding set goes first, as leaving it needs CAP_SETPCAP; no_new_privs then keeps file
    capabilities and set-user-ID programs from bringing any back.
    """
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(last_capability() + 1):
        if prctl(PR_CAPBSET_READ, capability):
            prctl(PR_CAPBSET_DROP, capability)
    capset_none()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
