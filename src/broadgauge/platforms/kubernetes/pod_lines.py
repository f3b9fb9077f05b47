"""What did the first pod say beside its leader's events? Each line once, and not without end.

A log that is read again begins again, or, where it was rotated, later: a line is new where the
stream has had it more often than the file. So one that a rotated log had and that comes again is
not told from its first time; nothing is double.
"""

from collections import Counter
from pathlib import Path

from broadgauge.platforms.launch_folders import writing

MOST_BYTES = 8 * 2**20
MOST_LINES = 100_000
FULL = "broadgauge: what came later is not kept: this file is full"
"""Its last line then."""


class PodLines:
    """A file of lines, also of an earlier life of the tool."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        data = path.read_bytes() if path.exists() else b""
        lines = data.split(b"\n")[:-1]
        self._kept = Counter(lines)
        self._told: Counter[bytes] = Counter()
        """By the stream that is read now."""
        self._num_bytes, self._num_lines = len(data), len(lines)
        self._is_full = FULL.encode() in self._kept

    def begins(self) -> None:
        """The log is read again."""
        self._told.clear()

    def keep(self, line: str) -> None:
        """Raises RunFolderError."""
        if self._is_full:
            return
        data = line.replace("\n", " ").encode(errors="replace")
        self._told[data] += 1
        if self._told[data] <= self._kept[data]:
            return
        self._kept[data] += 1
        self._num_bytes += len(data) + 1
        self._num_lines += 1
        self._is_full = self._num_bytes > MOST_BYTES or self._num_lines > MOST_LINES
        with writing(self._path):
            self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write((FULL.encode() if self._is_full else data) + b"\n")
