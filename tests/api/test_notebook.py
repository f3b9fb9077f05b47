"""Holds that a notebook's interrupt ends a run in good order, in a real kernel."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FIRST = f"""
import asyncio, os, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.api.scripted import stand_ins
from tests.api.test_run_and_resume import TINY
for place, name, value in stand_ins():
    setattr(place, name, value)
import broadgauge
first = TINY["workloads"][0] | {{"name": "first"}}
two = [first, first | {{"name": "second", "steps": 6}}]
"""
RUN = """
asyncio.get_running_loop()
broadgauge.run(TINY | {"workloads": two}, progress=lambda line: print(line, flush=True))
"""
GO_ON = """
del os.environ["LINGER_IN"]
print("resumed", broadgauge.resume("last").is_complete)
"""


@pytest.fixture
def kernel(empty_folder: Path) -> Iterator[tuple[Any, Any]]:
    """Its manager and a client, with ranks that linger in their second trial."""
    from jupyter_client.manager import start_new_kernel

    environment = {**os.environ, "LINGER_IN": "measure"}
    manager, client = start_new_kernel(cwd=str(empty_folder), env=environment)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def said_until(client: Any, words: str) -> str:
    """What the kernel writes and raises, up to these words."""
    said = ""
    while words not in said:
        message = client.get_iopub_msg(timeout=60)
        content = message["content"]
        said += content.get("text", "") + content.get("ename", "") + content.get("evalue", "")
    return said


def wait_until_idle(client: Any) -> None:
    """The kernel has done with what it was given."""
    while client.get_iopub_msg(timeout=60)["content"].get("execution_state") != "idle":
        pass


def test_an_interrupted_run_goes_on_later(kernel: tuple[Any, Any]) -> None:
    manager, client = kernel
    client.execute(FIRST)
    client.execute(RUN)
    said_until(client, "[1/4]")
    manager.interrupt_kernel()
    ended = said_until(client, "goes on")
    assert "KeyboardInterrupt" in ended
    assert "broadgauge.resume(" in ended
    wait_until_idle(client)  # what is sent before is not executed, after an error
    client.execute(GO_ON)
    assert "resumed True" in said_until(client, "resumed ")
