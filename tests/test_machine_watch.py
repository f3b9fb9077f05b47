"""Proves tests/machine_watch.py: what was lost of a span, and that a core held by another shows."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.machine_watch import ALLOWANCE_S, LostTime, Stretch, lost_s, watching

HOLDS_A_CORE = """
import os, sys, time
os.sched_setaffinity(0, [int(sys.argv[1])])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
begin_s = time.monotonic()
while time.monotonic() < begin_s + 0.05:
    pass
print(begin_s, time.monotonic())
"""


def test_what_lies_in_the_span_is_lost_less_what_a_bucket_bears() -> None:
    stretches = [Stretch(8.0, 9.0), Stretch(5.0, 5.5), Stretch(1.0, 2.0)]
    assert lost_s(stretches, 0.0, 10.0) == pytest.approx(2.5 - 3 * ALLOWANCE_S)
    assert lost_s(stretches, 1.5, 5.25) == pytest.approx(0.75 - 2 * ALLOWANCE_S)
    assert lost_s(stretches, 2.0, 5.0) == 0.0
    assert lost_s([Stretch(3.0, 3.0 + ALLOWANCE_S / 2)], 0.0, 10.0) == 0.0


def test_any_reader_may_ask_and_nothing_is_left() -> None:
    with watching() as folder:
        lost_time = LostTime(folder)
        now_s = time.monotonic()
        assert 0.0 <= lost_time.most_ratio(now_s - 1e-3, now_s) <= 1.0
        assert lost_time.num_cores == len(os.sched_getaffinity(0))
        assert lost_time.total_lost_s >= 0.0
        names = {int(path.name) for path in folder.iterdir()}
        assert names == os.sched_getaffinity(0)
        assert all(path.stat().st_mode & 0o004 for path in (folder, *folder.iterdir()))
    assert not folder.exists()


def test_a_probe_that_does_not_wake_has_lost_all(tmp_path: Path) -> None:
    """Nobody writes to this one."""
    (tmp_path / "0").write_bytes(bytes(32))
    now_s = time.monotonic()
    assert LostTime(tmp_path).most_ratio(now_s - 1, now_s, patience_s=0.0) == 1.0


@pytest.mark.root
def test_a_core_that_a_real_time_program_holds_is_lost() -> None:
    """Nearly all of it, whatever else goes on: a probe sleeps 1 ms and begins a burst asleep."""
    core = min(os.sched_getaffinity(0))
    with watching() as folder:
        command = [sys.executable, "-c", HOLDS_A_CORE, str(core)]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        begin_s, end_s = map(float, said.split())
        assert LostTime(folder).most_ratio(begin_s, end_s) > 0.9
