"""What do measurements share that take long, so that they are run in pieces?

Each piece is a line of a file in the measurement's folder, written when it is whole: what was
interrupted is run again, what is there is not.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NUM_FIELDS = 8
"""user, nice, system, idle, iowait, irq, softirq, steal: guests are counted in user already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimes:
    """What this machine's cores did since it started, in ticks of all of them."""

    all_ticks: int
    idle_ticks: int
    stolen_ticks: int

    @classmethod
    def now(cls, path: Path = Path("/proc/stat")) -> "CoreTimes":
        ticks = [int(each) for each in path.read_text().split("\n", 1)[0].split()[1:]]
        user, nice, system, idle, waiting, irq, softirq, stolen = ticks[:_NUM_FIELDS]
        return cls(
            all_ticks=user + nice + system + idle + waiting + irq + softirq + stolen,
            idle_ticks=idle + waiting,
            stolen_ticks=stolen,
        )

    def since(self, before: "CoreTimes") -> dict[str, float]:
        """Shares of all cores' time: idle, and taken by the hypervisor for others."""
        elapsed = max(self.all_ticks - before.all_ticks, 1)
        return {
            "idle_ratio": (self.idle_ticks - before.idle_ticks) / elapsed,
            "stolen_ratio": (self.stolen_ticks - before.stolen_ticks) / elapsed,
        }


class Pieces:
    """The pieces of one measurement, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "pieces.jsonl"

    def read(self) -> list[dict[str, Any]]:
        if not self._path.is_file():
            return []
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def run(self, wanted: int, for_s: float, piece: Callable[[int], dict[str, Any]]) -> None:
        """Run those that are missing, as long as there is time to begin one more."""
        longest_s = 0.0
        start_s = time.monotonic()
        for number in range(len(self.read()), wanted):
            began_s = time.monotonic()
            if began_s - start_s + longest_s > for_s:
                print(f"{number} of {wanted} are there: run it again to go on", flush=True)
                return
            self._append(_measured(number, piece))
            longest_s = max(longest_s, time.monotonic() - began_s)

    def _append(self, piece: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(piece) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _measured(number: int, piece: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    started_unix_s, before = time.time(), CoreTimes.now()
    found = piece(number)
    shares = CoreTimes.now().since(before)
    return {"number": number, "started_unix_s": started_unix_s, **shares, **found}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What a command took."""

    wall_s: float
    cpu_s: float
    """User and system time of all its processes."""


def broadgauge(source: Path, arguments: list[str]) -> Took:
    """Run the command of a source tree with this interpreter."""
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Where a container forbids to keep compiled modules, each process would compile its imports.
    keeping = {"PYTHONDONTWRITEBYTECODE": ""}
    environment = {**os.environ, **keeping, "PYTHONPATH": os.pathsep.join(paths)}
    start_s, start_cpu_s = time.perf_counter(), _children_cpu_s()
    done = subprocess.run(
        [sys.executable, "-m", "broadgauge", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = Took(wall_s=time.perf_counter() - start_s, cpu_s=_children_cpu_s() - start_cpu_s)
    if done.returncode:
        raise SystemExit(
            f"{source}: broadgauge {' '.join(arguments)} ended with {done.returncode}:\n"
            f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return took


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def emptied(folder: Path) -> Path:
    """A folder for the runs of a piece; what is left there of an interrupted one is moved aside."""
    if folder.exists():
        folder.rename(folder.with_name(f"{folder.name}-interrupted-{time.time_ns()}"))
    return folder


def only_run(folder: Path) -> Path:
    """The one run in a folder of runs."""
    (run,) = folder.iterdir()
    return run


def machine_line() -> str:
    """`2 cores of AMD EPYC, kernel 6.18, Python 3.11.7`."""
    names = (line.split(":", 1)[1].strip() for line in _cpu_lines() if "model name" in line)
    name = next(names, platform.machine())
    return (
        f"{os.cpu_count()} cores of {name}, kernel {platform.release()}, "
        f"Python {platform.python_version()}"
    )


def _cpu_lines() -> Iterator[str]:
    path = Path("/proc/cpuinfo")
    return iter(path.read_text().splitlines() if path.is_file() else ())


def when(pieces: list[dict[str, Any]]) -> str:
    """`2026-11-22 20:40 to 21:05 UTC`."""
    first, last = (time.gmtime(each["started_unix_s"]) for each in (pieces[0], pieces[-1]))
    return f"{time.strftime('%Y-%m-%d %H:%M', first)} to {time.strftime('%H:%M', last)} UTC"


def cores_line(pieces: list[dict[str, Any]]) -> str:
    """What the machine's cores did meanwhile."""
    parts = []
    for name, what in (("stolen_ratio", "stolen"), ("idle_ratio", "idle")):
        shares = sorted(100 * piece[name] for piece in pieces)
        mean = sum(shares) / len(shares)
        parts.append(f"{what} {mean:.1f} % ({shares[0]:.1f} to {shares[-1]:.1f})")
    return "cores: " + ", ".join(parts)


def commit_of(checkout: Path) -> str:
    """Its commit, `+` where files differ from it; unknown outside of a checkout."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"
