"""Does a large trace take time and memory in proportion? Ten million: scripts/trace_bench.py."""

import sys
from pathlib import Path

import pytest
from scripts.trace_bench import Used, used_by
from tests.traces.large import write_large


@pytest.mark.thorough
@pytest.mark.needs_cores
@pytest.mark.timeout(300)
def test_time_and_memory_grow_with_the_trace_and_no_faster(tmp_path: Path) -> None:
    """Of the whole command: four times as much takes less than eight times as long."""

    def used(num_bytes: int) -> tuple[int, Used]:
        path = tmp_path / f"{num_bytes}.json"
        write_large(path, num_bytes)
        command = [sys.executable, "-m", "broadgauge", "explain", "--json", str(path)]
        return path.stat().st_size, used_by(command)

    small_bytes, small = used(15_000_000)
    large_bytes, large = used(60_000_000)
    assert large.cpu_s < 8 * small.cpu_s
    grown = (large.memory_bytes - small.memory_bytes) / (large_bytes - small_bytes)
    assert 0 < grown < 0.5
