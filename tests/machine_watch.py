"""When were the cores ours? A probe on each adds up how much longer it slept than it asked to.

A core that a hypervisor lends to others, or that a real-time program holds, does not wake what
sleeps there: both show alike, to the microsecond, where /proc/stat counts the one in hundredths of
a second and the other not at all. Counted is what exceeds `ALLOWANCE_S`, which is also how long an
emulated link's token bucket bears: what is shorter costs it nothing.

As root a probe has the lowest real-time priority, so that no ordinary program delays it, ours or
others': they do not delay the kernel's own timers and queues either. An ordinary user's probe asks
for short turns instead, and then sees neighbours and our own work too: less is judged, and nothing
more. Measured on two cores of a virtual machine, in shares of the time: 0.05 to 0.2 % lost beside
ordinary load, 6 to 9 % without priority; 5 % of a core for each probe.

Probes write to a file of their own each, which any user may read: see `LostTime`.
"""

import ctypes
import gc
import mmap
import os
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SLEEP_S = 1e-3
ALLOWANCE_S = 100e-6
_HEAD = struct.Struct("=dQdQ")
"""Until when the core was watched (monotonic clock), how many stretches follow, how much was lost
in all, and whether the probe has priority over ordinary programs."""
_STRETCH = struct.Struct("=dd")
"""From when the probe should have been awake, and when it was."""
_MOST_STRETCHES = 1 << 18
_PR_SET_TIMERSLACK = 29
_PR_SET_PDEATHSIG = 1
_SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_TURN_NS = 100_000
"""The shortest turn that the kernel grants. Source: sched(7), SCHED_OTHER; Linux 6.12."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a core was not ours."""

    begin_s: float
    end_s: float


def lost_s(stretches: Sequence[Stretch], begin_s: float, end_s: float) -> float:
    """How much of this span was lost?"""
    overlaps = (min(each.end_s, end_s) - max(each.begin_s, begin_s) for each in stretches)
    return sum(overlap - ALLOWANCE_S for overlap in overlaps if overlap > ALLOWANCE_S)


class LostTime:
    """What the probes have found so far, of any span of the monotonic clock."""

    def __init__(self, folder: Path) -> None:
        self._cores = {int(path.name): _Record(path) for path in sorted(folder.iterdir())}

    @property
    def num_cores(self) -> int:
        return len(self._cores)

    @property
    def has_priority(self) -> bool:
        """Else our own work counts as lost, too."""
        return all(record.head[3] for record in self._cores.values())

    @property
    def total_lost_s(self) -> float:
        """Of all cores, since the probes began."""
        return sum(record.head[2] for record in self._cores.values())

    def most_ratio(self, begin_s: float, end_s: float, patience_s: float = 10.0) -> float:
        """The part of this span that was lost on the core that lost most. Waits till every probe
        has been awake since; a probe that is not by then has lost all of it."""
        give_up_s = time.monotonic() + patience_s
        worst_s = 0.0
        for record in self._cores.values():
            while record.watched_until_s < end_s:
                if time.monotonic() > give_up_s:
                    return 1.0
                time.sleep(SLEEP_S)
            worst_s = max(worst_s, lost_s(record.stretches_since(begin_s), begin_s, end_s))
        return worst_s / (end_s - begin_s)


class _Record:
    """One core's file, as its reader sees it."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    @property
    def head(self) -> tuple[float, int, float, int]:
        return _HEAD.unpack_from(self._map)

    @property
    def watched_until_s(self) -> float:
        return self.head[0]

    def stretches_since(self, begin_s: float) -> list[Stretch]:
        """The last first."""
        found = []
        count = self.head[1]
        for number in range(count, max(0, count - _MOST_STRETCHES), -1):
            stretch = Stretch(*_STRETCH.unpack_from(self._map, _place(number - 1)))
            if stretch.end_s <= begin_s:
                break
            found.append(stretch)
        return found


@contextmanager
def watching(cores: Sequence[int] | None = None) -> Iterator[Path]:
    """Watch these cores, all of this process's by default; gives the folder for `LostTime`."""
    with tempfile.TemporaryDirectory(prefix="machine-watch-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        pids = []
        try:
            for core in sorted(os.sched_getaffinity(0)) if cores is None else cores:
                pids.append(_start(core, folder / str(core)))
            yield folder
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _start(core: int, path: Path) -> int:
    """Start a probe, by its pid; it has begun to watch when this returns."""
    path.touch()
    os.truncate(path, _HEAD.size + _MOST_STRETCHES * _STRETCH.size)
    path.chmod(0o644)
    command = [sys.executable, "-S", "-E", __file__, str(core), str(path), str(os.getpid())]
    pid = os.posix_spawn(sys.executable, command, os.environ)
    record = _Record(path)
    while record.watched_until_s == 0.0:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            raise OSError(f"the probe of core {core} ended")
        time.sleep(SLEEP_S)
    return pid


def _place(number: int) -> int:
    """Of a stretch in the file; the oldest are overwritten."""
    return _HEAD.size + number % _MOST_STRETCHES * _STRETCH.size


def _probe(core: int, path: Path) -> None:
    """Sleep and look, for ever."""
    os.sched_setaffinity(0, [core])
    has_priority = _take_priority()
    gc.disable()
    with path.open("r+b") as file:
        record = mmap.mmap(file.fileno(), 0)
    count, total_s = 0, 0.0
    woken_s = time.monotonic()
    while True:
        due_s = woken_s + SLEEP_S
        time.sleep(SLEEP_S)
        woken_s = time.monotonic()
        if woken_s - due_s > ALLOWANCE_S:
            _STRETCH.pack_into(record, _place(count), due_s, woken_s)
            count += 1
            total_s += woken_s - due_s - ALLOWANCE_S
        _HEAD.pack_into(record, 0, woken_s, count, total_s, has_priority)


def _take_priority() -> bool:
    """Over ordinary programs where we may, else before them in each turn."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        number = _SYS_SCHED_SETATTR.get(os.uname().machine)
        if number is not None:  # size, policy, flags, nice, priority, runtime, deadline, period
            wanted = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, 0, 0, _TURN_NS, 0, 0)
            libc.syscall(number, 0, wanted, 0)
        return False
    return True


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    _end_with_parent(int(sys.argv[3]))
    _probe(int(sys.argv[1]), Path(sys.argv[2]))
