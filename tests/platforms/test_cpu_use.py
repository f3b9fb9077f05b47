"""Are the cores' figures a node's own, and unknown where the kernel does not show them?"""

import os
from pathlib import Path

import pytest

from broadgauge.agent.supervisor.cpu_use import cpu_seconds, node_seconds

CORES = sorted(os.sched_getaffinity(0))
LINE = "cpu{} 100 0 200 9000 0 10 30 40 0 0\n"


def stat(folder: Path, cores: list[int]) -> Path:
    path = folder / "stat"
    path.write_text("cpu 1 2 3 4 5 6 7 8 0 0\n" + "".join(map(LINE.format, cores)) + "intr 1\n")
    return path


def test_a_nodes_cores_are_summed(tmp_path: Path) -> None:
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    seconds = cpu_seconds(stat(tmp_path, [*CORES, max(CORES) + 1]))
    assert node_seconds(CORES, seconds) == pytest.approx(
        tuple(len(CORES) * ticks * tick_s for ticks in (100, 210, 30, 40))
    )


def test_cores_numbered_anew_are_unknown(tmp_path: Path) -> None:
    """A container of other cores than the first ones: lxcfs counts its cores from 0."""
    seconds = cpu_seconds(stat(tmp_path, [core + max(CORES) + 1 for core in CORES]))
    assert node_seconds(CORES, seconds) == (None,) * 4
    some = cpu_seconds(stat(tmp_path, [*CORES[1:], max(CORES) + 1]))
    assert node_seconds(CORES[-1:], some) == (None,) * 4  # whose figures are they?


def test_a_core_that_is_gone_leaves_its_node_unknown(tmp_path: Path) -> None:
    seconds = cpu_seconds(stat(tmp_path, CORES))
    assert node_seconds([*CORES, 4095], seconds) == (None,) * 4
    assert None not in node_seconds(CORES[:1], seconds)
