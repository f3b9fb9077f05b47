"""How do the namespace tests run a case inside a cluster, as root and as an ordinary user?"""

import functools
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

INSIDE = Path(__file__).with_name("inside.py")
REPOSITORY = Path(__file__).parents[3]
NOBODY = 65534

RunCase = Callable[..., Any]


def environment() -> dict[str, str]:
    """Let any interpreter of this version find the package and what it needs."""
    paths = [str(REPOSITORY / "src"), str(REPOSITORY), sysconfig.get_path("purelib")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def identity(user: str) -> dict[str, Any]:
    """Which arguments make subprocess.run run as `user`?"""
    if user == "ordinary" and os.geteuid() == 0:
        return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    return {}


@functools.cache
def interpreter(user: str) -> str | None:
    """Which Python can this user run, with pyroute2 and this package? None if there is none.

    root's own (say under /root/.pyenv) is closed to others; the system's may be of use then.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (
        sys.executable,
        f"/usr/bin/python{version}",
        f"/usr/local/bin/python{version}",
    ):
        command = [candidate, "-c", "import pyroute2, broadgauge"]
        try:
            child = subprocess.run(
                command, env=environment(), capture_output=True, check=False, **identity(user)
            )
        except OSError:
            continue
        if child.returncode == 0:
            return candidate
    return None


def command_of(user: str, case: str, **arguments: Any) -> dict[str, Any]:
    """What do subprocess.run and Popen need to run a case as this user? Skips where none can."""
    if user == "root" and os.geteuid() != 0:
        pytest.skip("the tests do not run as root")
    python = interpreter(user)
    if python is None:
        pytest.skip(f"no Python with pyroute2 that the {user} user may run")
    arguments_json = json.dumps(arguments)
    return {
        "args": [python, str(INSIDE), case, arguments_json],
        "env": environment(),
        "text": True,
        **identity(user),
    }


@pytest.fixture(params=["root", "ordinary"])
def user(request: pytest.FixtureRequest) -> str:
    """As whom: root needs no user namespace, an ordinary user does."""
    return str(request.param)


@pytest.fixture
def run_case(user: str) -> RunCase:
    """Run a case of inside.py as `user` and give back its answer."""

    def run(case: str, **arguments: Any) -> Any:
        child = subprocess.run(
            **command_of(user, case, **arguments), capture_output=True, timeout=120, check=False
        )
        if child.returncode != 0:
            pytest.fail(child.stderr)  # no AssertionError: a case that breaks is never excused
        return json.loads(child.stdout.splitlines()[-1])

    return run


@pytest.fixture
def start_case(user: str) -> Iterator[RunCase]:
    """Start a case of inside.py as `user`; whatever is left of it is killed after the test."""
    children: list[subprocess.Popen[str]] = []

    def start(case: str, **arguments: Any) -> subprocess.Popen[str]:
        command = command_of(user, case, **arguments)
        child: subprocess.Popen[str] = subprocess.Popen(**command, stdout=subprocess.PIPE)
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()
