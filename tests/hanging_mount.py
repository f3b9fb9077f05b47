"""Is a mount that hangs survived? A file system in memory that answers nothing any more from a
chosen request on, as a network's does whose server is gone.

Its requests come over /dev/fuse, which takes root. Source: Linux, include/uapi/linux/fuse.h (7.31);
Documentation/filesystems/fuse: a process whose request was read can't be killed before it is
answered, or the connection aborted. What ends this process aborts it, too.
"""

import ctypes
import errno
import os
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_FORCED_AND_DETACHED = 1 | 2
"""MNT_FORCE aborts the connection. Source: umount(2)."""
_REQUEST = struct.Struct("<IIQQIIII")
_ANSWER = struct.Struct("<IiQ")
_ROOT = 1
_WRITE_BYTES = 1 << 20
_SIZE_IS_SET = 1 << 3
_BIG_WRITES = 1 << 5
_OPENED = bytes(16)


class Ask(IntEnum):
    """What the kernel asks for."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    INTERRUPT = 36
    BATCH_FORGET = 42


_NOT_ANSWERED = (Ask.FORGET, Ask.BATCH_FORGET, Ask.INTERRUPT)


@dataclass
class _File:
    mode: int
    content: bytearray = field(default_factory=bytearray)
    names: dict[bytes, int] = field(default_factory=dict)


@contextmanager
def hanging_mount(place: Path, at: Ask | None, times: int = 1) -> Iterator["HangingFiles"]:
    """Mounted on `place`, a folder that is there. `at`: hangs when this is asked for the
    `times`th time; None: nothing is ever read of what is asked, so that who waits can be killed.
    Gone at the end, whatever waits for it."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    told = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    if _LIBC.mount(b"hanging", os.fsencode(place), b"fuse.hanging", 0, told.encode()):
        number = ctypes.get_errno()
        os.close(fd)
        raise OSError(number, os.strerror(number), str(place))
    files = HangingFiles(fd, at, times)
    thread = threading.Thread(target=files.serve, daemon=True)
    try:
        thread.start()
        yield files
    finally:
        _LIBC.umount2(os.fsencode(place), _FORCED_AND_DETACHED)
        os.close(fd)
        thread.join()


class HangingFiles:
    """Files in memory, and who asks for them."""

    def __init__(self, fd: int, at: Ask | None, times: int) -> None:
        self._fd, self._at, self._left = fd, at, times
        self._files = {_ROOT: _File(stat.S_IFDIR | 0o755)}
        self.hangs = threading.Event()
        self._answers: dict[int, Callable[[int, bytes], bytes]] = {
            Ask.INIT: self._begin,
            Ask.LOOKUP: self._look_up,
            Ask.GETATTR: self._attributes,
            Ask.SETATTR: self._set_attributes,
            Ask.MKDIR: self._make_folder,
            Ask.CREATE: self._create,
            **dict.fromkeys((Ask.UNLINK, Ask.RMDIR), self._remove),
            **dict.fromkeys((Ask.OPEN, Ask.OPENDIR), self._open),
            Ask.READ: self._read,
            Ask.WRITE: self._write,
            Ask.STATFS: self._free,
            Ask.READDIR: self._list,
            **dict.fromkeys((Ask.RELEASE, Ask.RELEASEDIR, Ask.FLUSH), self._nothing),
            **dict.fromkeys((Ask.FSYNC, Ask.FSYNCDIR), self._nothing),
        }

    def serve(self) -> None:
        """Until the connection is aborted, or nothing is read any more."""
        while not (self.hangs.is_set() and self._at is None):
            try:
                request = os.read(self._fd, _WRITE_BYTES + 4096)
            except OSError:
                return
            self._take(request)

    def _take(self, request: bytes) -> None:
        _, number, unique, node, *_ = _REQUEST.unpack_from(request)
        if number == self._at:
            self._left -= 1
        if self._at is not None and self._left <= 0:
            self.hangs.set()
        if number in _NOT_ANSWERED or self.hangs.is_set():
            return
        try:
            error, answer = 0, self._answers[number](node, request[_REQUEST.size :])
        except OSError as refused:
            error, answer = refused.errno or errno.EIO, b""
        except KeyError:  # no such name; and what is never answered, the kernel does without
            error, answer = errno.ENOENT if number in self._answers else errno.ENOSYS, b""
        os.write(self._fd, _ANSWER.pack(_ANSWER.size + len(answer), -error, unique) + answer)
        if number == Ask.INIT and self._at is None:
            self.hangs.set()

    def _begin(self, node: int, told: bytes) -> bytes:
        limits = (7, 31, _WRITE_BYTES, _BIG_WRITES, 0, 0, _WRITE_BYTES, 1, 0, 0)
        return struct.pack("<IIIIHHIIHH32x", *limits)

    def _look_up(self, node: int, told: bytes) -> bytes:
        return self._entry(self._files[node].names[told.rstrip(b"\0")])

    def _attributes(self, node: int, told: bytes = b"") -> bytes:
        """Nothing of it may be remembered."""
        file = self._files[node]
        size = len(file.content)
        sizes_and_times = (node, size, -(-size // 512), 0, 0, 0, 0, 0, 0)
        rest = (file.mode, 1, 0, 0, 0, 4096, 0)
        return bytes(16) + struct.pack("<QQQQQQIIIIIIIIII", *sizes_and_times, *rest)

    def _set_attributes(self, node: int, told: bytes) -> bytes:
        which, _, _, size = struct.unpack_from("<IIQQ", told)
        if which & _SIZE_IS_SET:
            self._resize(node, size)
        return self._attributes(node)

    def _make_folder(self, node: int, told: bytes) -> bytes:
        return self._entry(self._make(node, told[8:], stat.S_IFDIR | 0o755))

    def _create(self, node: int, told: bytes) -> bytes:
        return self._entry(self._make(node, told[16:], stat.S_IFREG | 0o600)) + _OPENED

    def _open(self, node: int, told: bytes) -> bytes:
        return _OPENED

    def _read(self, node: int, told: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", told)
        return bytes(self._files[node].content[offset : offset + size])

    def _write(self, node: int, told: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", told)
        content = self._files[node].content
        self._resize(node, max(offset + size, len(content)))
        content[offset : offset + size] = told[40 : 40 + size]
        return struct.pack("<II", size, 0)

    def _free(self, node: int, told: bytes) -> bytes:
        return struct.pack("<QQQQQIIII24x", *[1 << 20] * 3, 0, 0, 4096, 255, 4096, 0)

    def _nothing(self, node: int, told: bytes) -> bytes:
        return b""

    def _list(self, node: int, told: bytes) -> bytes:
        """All at once: there are few."""
        _, offset = struct.unpack_from("<QQ", told)
        listed = b""
        names = [*self._files[node].names.items()][offset:]
        for place, (name, inside) in enumerate(names, offset + 1):
            kind = stat.S_IFMT(self._files[inside].mode) >> 12
            entry = struct.pack("<QQII", inside, place, len(name), kind) + name
            listed += entry + bytes(-len(entry) % 8)
        return listed

    def _remove(self, node: int, told: bytes) -> bytes:
        """It stays for those that have it open."""
        names, name = self._files[node].names, told.rstrip(b"\0")
        if self._files[names[name]].names:
            raise OSError(errno.ENOTEMPTY, "not empty")
        del names[name]
        return b""

    def _make(self, node: int, name: bytes, mode: int) -> int:
        made = max(self._files) + 1
        self._files[made] = _File(mode)
        self._files[node].names[name.rstrip(b"\0")] = made
        return made

    def _resize(self, node: int, size: int) -> None:
        content = self._files[node].content
        del content[size:]
        content.extend(bytes(size - len(content)))

    def _entry(self, node: int) -> bytes:
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self._attributes(node)[16:]
