"""How do the namespace tests run a case inside a cluster, as root and as an ordinary user?"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.open_python import REPOSITORY, open_python

INSIDE = Path(__file__).with_name("inside.py")
HERE = {
    "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
    "PYTHONDONTWRITEBYTECODE": "1",
}
NOBODY = 65534

RunCase = Callable[..., Any]


def command_of(user: str, case: str, **arguments: Any) -> dict[str, Any]:
    """What do subprocess.run and Popen need to run a case as this user?"""
    is_root = os.geteuid() == 0
    if user == "root" and not is_root:
        pytest.skip("the tests do not run as root")
    command: dict[str, Any] = {"text": True, "env": {**os.environ, **HERE}}
    python, script = sys.executable, INSIDE
    if user == "ordinary" and is_root:
        opened = open_python()
        python, script = opened.executable, opened.folder / INSIDE.relative_to(REPOSITORY)
        command |= {
            "env": {**os.environ, **opened.environment},
            "user": NOBODY,
            "group": NOBODY,
            "extra_groups": [],
            "cwd": "/",
        }
    return command | {"args": [python, str(script), case, json.dumps(arguments)]}


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
