"""Does torch.save take longer for being looked at?"""

import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch

from broadgauge.probes.storage.saving import TimedFile

NUM_TENSORS, ELEMENTS = 32, 2_000_000
PAIRS = 15
ALLOWED = 1.02


def timed(work: Any, path: Path) -> float:
    begin_s = time.perf_counter()
    work(path)
    passed_s = time.perf_counter() - begin_s
    path.unlink()
    return passed_s


@pytest.mark.measured
def test_timers_cost_torch_save_little(tmp_path: Path) -> None:
    """256 MB, in turns: as users call it, and into what tells calls to the kernel apart."""
    state = {f"weight{number}": torch.randn(ELEMENTS) for number in range(NUM_TENSORS)}

    def as_users(path: Path) -> None:
        torch.save(state, path)

    def looked_at(path: Path) -> None:
        with TimedFile(path) as file:
            torch.save(state, file)

    timed(as_users, tmp_path / "file")
    pairs = [
        (timed(looked_at, tmp_path / "file"), timed(as_users, tmp_path / "file"))
        for _ in range(PAIRS)
    ]
    ratios = sorted(looked / plain for looked, plain in pairs)
    assert median(ratios) <= ALLOWED, f"{median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
