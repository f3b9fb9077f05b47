"""Does what runs in threads of ours live with what torch keeps of a thread?"""

import subprocess
import sys

import pytest

THREADS = """
from broadgauge.probes.storage.limits import hold_device_guard, within
hold_device_guard()
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
def fake():
    with FakeTensorMode():
        return tuple(torch.empty(3).shape)
print([within(60, "fake", fake) for _ in range(3)])
"""


@pytest.mark.measuring
@pytest.mark.shares_cores
def test_one_thread_after_the_other_makes_fake_tensors() -> None:
    """In a process of its own: without the guard that is held it is ended by SIGSEGV."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[(3,), (3,), (3,)]\n"
