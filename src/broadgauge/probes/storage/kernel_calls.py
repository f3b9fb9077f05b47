"""In which call to the kernel does a thread wait, and for which file?

The kernel tells it of this process and its children: /proc/<pid>/task/<tid>/syscall. Calls that can
wait for a file system are known by their numbers, which differ from machine to machine.
Source: proc_pid_syscall(5); Linux 6.18, arch/x86/entry/syscalls/syscall_64.tbl,
include/uapi/asm-generic/unistd.h (arm64).
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path


def _by_number(text: str) -> dict[int, str]:
    named = (each.split() for each in text.split(","))
    return {int(number): name for name, number in named}


_OPEN_FILE = {
    "x86_64": _by_number(
        "read 0, write 1, close 3, fstat 5, pread 17, pwrite 18, readv 19, writev 20, flock 73, "
        "fsync 74, fdatasync 75, ftruncate 77, getdents 78, fstatfs 138, getdents 217, "
        "fadvise 221, fallocate 285, preadv 295, pwritev 296, syncfs 306, preadv 327, "
        "pwritev 328, cachestat 451"
    ),
    "aarch64": _by_number(
        "flock 32, fstatfs 44, ftruncate 46, fallocate 47, close 57, getdents 61, read 63, "
        "write 64, readv 65, writev 66, pread 67, pwrite 68, preadv 69, pwritev 70, fstat 80, "
        "fsync 82, fdatasync 83, fadvise 223, syncfs 267, preadv 286, pwritev 287, cachestat 451"
    ),
}
"""The first argument is a descriptor."""
_NAMED_FILE = {
    "x86_64": _by_number(
        "open 2, stat 4, lstat 6, access 21, truncate 76, rename 82, mkdir 83, rmdir 84, "
        "unlink 87, readlink 89, chmod 90, statfs 137"
    ),
    "aarch64": _by_number("statfs 43, truncate 45"),
}
"""The first argument is a path."""
_NAMED_IN_FOLDER = {
    "x86_64": _by_number(
        "open 257, mkdir 258, stat 262, unlink 263, rename 264, readlink 267, access 269, "
        "rename 316, stat 332, open 437, access 439"
    ),
    "aarch64": _by_number(
        "mkdir 34, unlink 35, rename 38, access 48, open 56, readlink 78, stat 79, rename 276, "
        "stat 291, open 437, access 439"
    ),
}
"""The second argument is a path."""
_NO_CALL = "-1"
_LONGEST_PATH = 4096
_HERE = platform.machine()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """A thread is in it, and not on a core."""

    words: str
    """`fsync of /mnt/data/file`."""
    evidence: str
    """The same as long as nothing has come back to the thread."""


def waiting_call(pid: int, thread: int, folders: frozenset[str]) -> WaitingCall | None:
    """Of a thread that waits for a file at or below one of these folders, or for a page of a file
    that is mapped into memory. None: it does not, or the kernel does not say."""
    place = Path(f"/proc/{pid}/task/{thread}")
    try:
        told = (place / "syscall").read_text()
        words = _words(pid, place, told.split(), folders)
        moved = (place / "io").read_text()
    except (OSError, ValueError):
        return None
    if words is None:
        return None
    return WaitingCall(words=words, evidence=f"{thread} {words} {told} {moved}")


def _words(pid: int, place: Path, told: list[str], folders: frozenset[str]) -> str | None:
    if told[0] == _NO_CALL:
        state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        return "a page of a file that is mapped into memory" if state == "D" else None
    if not told[0].isdigit():  # `running`
        return None
    number, first, second = int(told[0]), int(told[1], 16), int(told[2], 16)
    if name := _OPEN_FILE.get(_HERE, {}).get(number):
        path = str(Path(f"/proc/{pid}/fd/{first}").readlink())
    elif name := _NAMED_FILE.get(_HERE, {}).get(number):
        path = _text_at(pid, first)
    elif name := _NAMED_IN_FOLDER.get(_HERE, {}).get(number):
        path = _text_at(pid, second)
    else:
        return None
    is_there = any(path == each or path.startswith(f"{each}/") for each in folders)
    return f"{name} of {path}" if is_there else None


def _text_at(pid: int, address: int) -> str:
    """In a process's memory, up to the first zero byte. Raises OSError."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.fsdecode(os.pread(memory, _LONGEST_PATH, address).partition(b"\0")[0])
    finally:
        os.close(memory)
