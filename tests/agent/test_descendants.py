"""Are processes below a supervisor ended, and is one left that can't be?"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.driving import wait_until
from tests.hanging_mount import Ask, hanging_mount

from broadgauge.messages.waiting_limits import FACTOR_VARIABLE

ENDS_ALL_WHEN_TOLD = """
import subprocess, sys
from broadgauge.agent.supervisor.descendants import kill_descendants
command, quiet = [sys.executable, "-c", *sys.argv[1:]], subprocess.DEVNULL
child = subprocess.Popen(command, stdout=quiet, start_new_session=True)
print(child.pid, flush=True)
sys.stdin.readline()
print(kill_descendants(), flush=True)
"""
SLEEPS = "import time; time.sleep(1000)"
MAKES_A_FOLDER = "import os, sys; os.mkdir(sys.argv[1])"
LEFT_SOON = {**os.environ, FACTOR_VARIABLE: "0.3"}


@contextmanager
def parent_of(*program: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """With its child's pid; it ends all that it started when it is told a line, and then says
    whether nothing was left."""
    command = [sys.executable, "-c", ENDS_ALL_WHEN_TOLD, *program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=LEFT_SOON) as parent:
        try:
            assert parent.stdout is not None
            yield parent, int(parent.stdout.readline())
        finally:
            parent.kill()


def test_a_child_in_a_session_of_its_own_is_ended() -> None:
    with parent_of(SLEEPS) as (parent, child):
        said, _ = parent.communicate("\n")
        assert said == "True\n"
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.root
def test_one_that_waits_in_the_kernel_is_left(tmp_path: Path) -> None:
    with (
        hanging_mount(tmp_path, Ask.MKDIR) as files,
        parent_of(MAKES_A_FOLDER, str(tmp_path / "folder")) as (parent, child),
    ):
        wait_until(files.hangs.is_set)
        said, _ = parent.communicate("\n")
        assert said == "False\n"
        assert Path(f"/proc/{child}").exists()
