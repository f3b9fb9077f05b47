"""Is anything left on the machine when the tool, the guard or the supervisor is killed?"""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.open_python import REPOSITORY, open_python
from tests.own_machine import interfaces, mounts

from broadgauge.agent.supervisor.descendants import descendants
from broadgauge.platforms.supervised import SILENCE_LIMIT_S

KINDS = [
    "local",
    pytest.param("emulated", marks=pytest.mark.namespaces),
    pytest.param("tunnels", marks=[pytest.mark.namespaces, pytest.mark.thorough]),
]
VARIABLE = "BG_TEST_FAMILY"
GONE_WITHIN_S = 0.8 * SILENCE_LIMIT_S
"""Less than the silence after which whatever is left would end by itself."""


class Family:
    """A tool, what it started, and a variable by which all of them are known."""

    def __init__(self, kind: str, folder: Path, as_uid: int | None = None) -> None:
        self.mark = uuid.uuid4().hex
        python, root = sys.executable, REPOSITORY
        paths = {"PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
        if as_uid is not None:
            opened = open_python()
            python, root, paths = opened.executable, opened.folder, opened.environment
        self.tool = subprocess.Popen(
            [python, str(root / "tests/platforms/owning_tool.py"), kind, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **paths, VARIABLE: self.mark},
            cwd=folder,
            user=as_uid,
            group=as_uid,
            extra_groups=None if as_uid is None else [],
        )

    def wait_for_trial(self) -> int:
        """Until the trial is in its measured part; gives the guard's pid."""
        assert self.tool.stdout is not None
        guard = 0
        for line in self.tool.stdout:
            if line.startswith("supervisor"):
                guard = int(line.split()[1])
            if line.startswith("measure"):
                break
        deadline = time.monotonic() + GONE_WITHIN_S
        while not self.has_daemon() and time.monotonic() < deadline:
            time.sleep(0.02)
        return guard

    def has_daemon(self) -> bool:
        """Has a rank started its grandchild in a session of its own?"""
        for pid in self.members():
            with suppress(OSError):
                if b"left behind" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return True
        return False

    def members(self) -> set[int]:
        """Every living process that has the variable."""
        found = set()
        wanted = f"{VARIABLE}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if wanted in (entry / "environ").read_bytes():
                        found.add(int(entry.name))
        return found

    def wait_until_gone(self) -> set[int]:
        """What is left of it after a while? The tool itself is not counted."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while left := self.members() - {self.tool.pid}:
            if time.monotonic() > deadline:
                return left
            time.sleep(0.02)
        return set()

    def end(self) -> None:
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.tool.wait()


@pytest.fixture
def machine() -> Iterator[None]:
    """Its interfaces and mounts are afterwards what they were."""
    before = interfaces(), mounts()
    yield
    assert (interfaces(), mounts()) == before


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def family(kind: str, machine: None, tmp_path: Path) -> Iterator[Family]:
    family = Family(kind, tmp_path)
    yield family
    family.end()


def test_after_sigkill_of_the_tool(family: Family) -> None:
    family.wait_for_trial()
    assert len(family.members()) >= 6
    family.tool.kill()
    assert family.wait_until_gone() == set()


def test_after_sigkill_of_the_guard(family: Family) -> None:
    guard = family.wait_for_trial()
    os.kill(guard, signal.SIGKILL)
    assert family.wait_until_gone() == set()


def test_after_sigkill_of_the_supervisor(family: Family) -> None:
    guard = family.wait_for_trial()
    [supervisor] = children_of(guard)
    os.kill(supervisor, signal.SIGKILL)
    assert family.wait_until_gone() == set()


def test_after_sigkill_of_the_tool_while_the_supervisor_stands_still(family: Family) -> None:
    guard = family.wait_for_trial()
    [supervisor] = children_of(guard)
    os.kill(supervisor, signal.SIGSTOP)
    family.tool.kill()
    assert family.wait_until_gone() == set()


def test_after_sigint_of_the_tool(family: Family) -> None:
    family.wait_for_trial()
    family.tool.send_signal(signal.SIGINT)
    assert family.wait_until_gone() == set()


@pytest.mark.root
def test_as_an_ordinary_user(kind: str, machine: None) -> None:
    nobody = 65534
    folder = Path(f"/tmp/broadgauge-test-{uuid.uuid4().hex}")
    folder.mkdir()
    os.chown(folder, nobody, nobody)
    family = Family(kind, folder, nobody)
    try:
        family.wait_for_trial()
        if not family.has_daemon():
            pytest.skip("this machine refuses namespaces to ordinary users")
        family.tool.kill()
        assert family.wait_until_gone() == set()
    finally:
        family.end()
        shutil.rmtree(folder)


def children_of(pid: int) -> set[int]:
    family = descendants(pid)
    return {child for child in family if _parent(child) == pid}


def _parent(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("PPid:"):
            return int(line.split()[1])
    raise AssertionError(f"{pid} has no parent")
