"""What does `broadgauge explain` take for large traces, and beside HolisticTraceAnalysis?

    python scripts/trace_bench.py --events 10000000
    python scripts/trace_bench.py --events 800000 --hta FOLDER/bin/python --runs 3

CPU seconds and memory of whole processes, on a made trace of one FSDP2 rank (tests/traces/large.py)
at a quarter, the half and all of the events: linear where the seconds for a million stay the same.
`--hta` names a Python with HolisticTraceAnalysis (`pip install HolisticTraceAnalysis==0.5.0` in an
environment of its own); both read the same file, turn by turn.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.traces.large import write_large

EXPLAIN = [sys.executable, "-m", "broadgauge", "explain", "--json"]
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
found.get_temporal_breakdown(visualize=False)
found.get_comm_comp_overlap(visualize=False)
"""
EVENT_BYTES = 259
"""Of the made trace: 773,304 events are 200 MB."""


@dataclass(frozen=True)
class Used:
    cpu_s: float
    memory_bytes: int
    """The most that was resident at once."""


def used_by(command: list[str]) -> Used:
    """Of one process alone: what `wait4` says of it."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(said.decode(errors="replace"))
    return Used(cpu_s=usage.ru_utime + usage.ru_stime, memory_bytes=usage.ru_maxrss * 1024)


def show_growth(folder: Path, num_events: int) -> None:
    nothing = used_by([sys.executable, "-m", "broadgauge", "explain", "--help"])
    for part in (4, 2, 1):
        path = folder / "trace.json"
        written = write_large(path, num_events * EVENT_BYTES // part)
        gigabytes = path.stat().st_size / 1e9
        used = used_by([*EXPLAIN, str(path)])
        grown = (used.memory_bytes - nothing.memory_bytes) / 1e6 / gigabytes
        print(
            f"{written:>11,} events, {gigabytes:.2f} GB: {used.cpu_s:7.2f} s of CPU time, "
            f"{1e6 * used.cpu_s / written:.2f} s a million, {used.cpu_s / gigabytes:.1f} s/GB; "
            f"{used.memory_bytes / 1e6:,.0f} MB resident, {grown:.0f} MB for each GB",
            flush=True,
        )
        path.unlink()


def show_beside(folder: Path, num_events: int, hta: str, runs: int) -> None:
    path = folder / "rank0.json"
    write_large(path, num_events * EVENT_BYTES)
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(used_by([*EXPLAIN, str(path)]))
        theirs.append(used_by([hta, "-c", HTA, str(path)]))
    for name, used in (("explain", ours), ("HTA", theirs)):
        times = sorted(each.cpu_s for each in used)
        memory = max(each.memory_bytes for each in used) / 1e6
        print(
            f"{name:<8} {statistics.median(times):7.2f} s of CPU time ({times[0]:.2f} to "
            f"{times[-1]:.2f}, n={runs}), {memory:,.0f} MB"
        )
    ratios = sorted(b.cpu_s / a.cpu_s for a, b in zip(ours, theirs, strict=True))
    low, middle, high = ratios[0], statistics.median(ratios), ratios[-1]
    print(f"HTA takes {middle:.1f} times as long ({low:.1f} to {high:.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--hta", metavar="PYTHON")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.hta is None:
            show_growth(Path(folder), options.events)
        else:
            show_beside(Path(folder), options.events, options.hta, options.runs)


if __name__ == "__main__":
    main()
