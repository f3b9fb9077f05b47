"""How are the kernel's files read, so that none of them can stop or mislead the reader?

Every path is below a root, `/` or a tree that a test has built. A file that is missing, refused,
a pipe or a folder reads as None; of one that is too long the beginning is read; bytes that are no
text are replaced.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 1 << 20
"""Of one file; the longest ones read here, /proc/net/fib_trie and route, stay below it on hosts."""
MOST_NAMES = 4096
"""Of one folder: more PCI devices than any machine has."""
MOST_DIGITS = 19
"""A 64-bit counter's; Python refuses to read a number of thousands."""


class Tree:
    """A machine's files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.is_live = root.resolve() == Path("/")
        """Is it this machine, so that the kernel can be asked for what no file says?"""

    def path(self, *parts: str) -> Path:
        """Below the root: `tree.path("/sys", "class", "net")`."""
        return self.root.joinpath(*(part.lstrip("/") for part in parts))

    def data(self, *parts: str, most_bytes: int = MOST_BYTES) -> bytes | None:
        """A regular file's first bytes."""
        try:
            handle = os.open(self.path(*parts), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            return _read(handle, most_bytes)
        except OSError:  # sysfs refuses on reading: the speed of a link that is down
            return None
        finally:
            os.close(handle)

    def text(self, *parts: str) -> str | None:
        """Stripped; None: it can't be read."""
        data = self.data(*parts)
        return None if data is None else data.decode("utf-8", "replace").strip("\0 \t\r\n")

    def lines(self, *parts: str) -> list[str]:
        """Without their ends; none where it can't be read."""
        text = (self.data(*parts) or b"").decode("utf-8", "replace")
        return text.removesuffix("\n").split("\n") if text else []

    def number(self, *parts: str) -> int | None:
        """A decimal number; None: the file says none."""
        return to_number(self.text(*parts))

    def names(self, *parts: str) -> list[str]:
        """What is in a folder, sorted; empty where it can't be read."""
        try:
            with os.scandir(self.path(*parts)) as entries:
                found = sorted(entry.name for entry in entries)
        except (OSError, ValueError):
            return []
        return found[:MOST_NAMES]

    def exists(self, *parts: str) -> bool:
        """Of whatever kind."""
        with suppress(OSError, ValueError):
            return self.path(*parts).exists()
        return False

    def link_name(self, *parts: str) -> str | None:
        """The last part of where a link points to: the driver's name of `device/driver`."""
        with suppress(OSError, ValueError):
            return self.path(*parts).readlink().name or None
        return None

    def real(self, *parts: str) -> Path | None:
        """Where a link ends, with links followed; None: it is not there."""
        with suppress(OSError, ValueError, RuntimeError):
            return self.path(*parts).resolve(strict=True)
        return None


def _read(handle: int, most_bytes: int) -> bytes:
    """The kernel gives one page at a time."""
    pieces: list[bytes] = []
    left = most_bytes
    while left > 0:
        piece = os.read(handle, left)
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def to_number(text: str | None) -> int | None:
    """`-1`, `42`; None: no decimal number, or one that no counter holds."""
    if text is None or not text.isascii():
        return None
    digits = text.removeprefix("-")
    return int(text) if digits.isdigit() and len(digits) <= MOST_DIGITS + 1 else None


def count_of_list(text: str | None) -> int | None:
    """How many CPUs or nodes has the kernel's list `0-3,8`? None: it is none.

    Source: cpuset(7), "List format".
    """
    if not text:
        return None
    total = 0
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        begin, end = to_number(first), to_number(last or first)
        if begin is None or end is None or end < begin or begin < 0:
            return None
        total += end - begin + 1
    return total
