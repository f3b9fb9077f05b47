"""How fast is what should stay fast? Medians of several runs, with their spread; no verdict."""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "tests/results/golden/schema-1"
RUNS = 7


def cpu_s_of(command: list[str]) -> float:
    """CPU seconds, user and system, of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def wall_s_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(name: str, samples: list[float], unit: str) -> None:
    low, middle, high = min(samples), statistics.median(samples), max(samples)
    print(f"{name:<44} {middle:8.3f} {unit}  ({low:.3f} to {high:.3f}, n={len(samples)})")


def compare_ten_thousand_pairs() -> None:
    from broadgauge.results.statistics import LaunchPair, compare_paired

    pairs = [
        LaunchPair(
            a_values=[1.0 + 0.01 * (block % 7)],
            b_values=[1.1 + 0.01 * (block % 5)],
            a_middle_s=10.0 * block + 3.0 * (block % 2),
            b_middle_s=10.0 * block + 3.0 * ((block + 1) % 2),
        )
        for block in range(10_000)
    ]
    compare_paired(pairs)


def main() -> None:
    broadgauge = [sys.executable, "-m", "broadgauge"]
    show("broadgauge --help, CPU", [cpu_s_of([*broadgauge, "--help"]) for _ in range(RUNS)], "s")
    dry = [*broadgauge, "run", "quickstart", "--dry-run"]
    show("broadgauge run quickstart --dry-run, CPU", [cpu_s_of(dry) for _ in range(RUNS)], "s")
    with tempfile.TemporaryDirectory() as folder:
        page = [*broadgauge, "report", str(GOLDEN), "--output", f"{folder}/report.html"]
        show("report of the golden run, CPU", [cpu_s_of(page) for _ in range(RUNS)], "s")
    show(
        "comparison of 10,000 interleaved pairs",
        [wall_s_of(compare_ten_thousand_pairs) for _ in range(RUNS)],
        "s",
    )


if __name__ == "__main__":
    main()
