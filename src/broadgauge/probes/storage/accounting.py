"""What did work cost this process and its children, and how long did each operation take?"""

import resource
import time
from dataclasses import dataclass, field
from pathlib import Path

KEPT_OPERATIONS = 1000
"""Of each variant: p99 has ten beyond it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """At one moment, or between two."""

    time_s: float
    cpu_s: float
    """Of this process and of children that have ended."""
    read_bytes: int | None
    """From block devices; None: the kernel doesn't tell."""

    @classmethod
    def now(cls) -> "Usage":
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(
            time_s=time.monotonic(),
            cpu_s=time.process_time() + children.ru_utime + children.ru_stime,
            read_bytes=read_from_devices(),
        )

    def until_now(self) -> "Usage":
        now = Usage.now()
        is_told = now.read_bytes is not None and self.read_bytes is not None
        return Usage(
            time_s=now.time_s - self.time_s,
            cpu_s=now.cpu_s - self.cpu_s,
            read_bytes=(now.read_bytes or 0) - (self.read_bytes or 0) if is_told else None,
        )


def read_from_devices(file: Path = Path("/proc/self/io")) -> int | None:
    """Bytes that this process, all its threads and its children that have ended had fetched.

    Source: Documentation/filesystems/proc.rst, /proc/<pid>/io, `read_bytes`.
    """
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    told = dict(line.split(": ") for line in lines if ": " in line)
    return int(told["read_bytes"]) if "read_bytes" in told else None


@dataclass(slots=True)
class Operations:
    """How long each took; threads may add to it."""

    seconds: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.seconds)

    def chosen(self) -> tuple[float, ...]:
        """At most 1,000, evenly chosen in the order of time."""
        step = max(1, -(-len(self.seconds) // KEPT_OPERATIONS))
        return tuple(self.seconds[::step])


@dataclass(slots=True)
class Parts:
    """Seconds by part of a save or load, in the order in which parts were first seen."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def timed(self, name: str) -> "_Timed":
        return _Timed(self, name)


class _Timed:
    def __init__(self, parts: Parts, name: str) -> None:
        self._parts, self._name = parts, name

    def __enter__(self) -> None:
        self._begin_s = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._parts.add(self._name, time.perf_counter() - self._begin_s)
