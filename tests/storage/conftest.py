"""How do the storage tests run cases on nodes that have storages?"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

INSIDE = Path(__file__).with_name("inside.py")
REPOSITORY = Path(__file__).parents[2]
ENDPOINT = "http://store-one:9000"
FOLDER = "/dev/shm/broadgauge-storage/one"
LIMIT_S = 120

RunSteps = Callable[..., list[Any]]


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where scratch folders are made in this test."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture
def run_steps(tmp_path: Path, scratch: Path) -> RunSteps:
    """Build nodes with a storage `one` of this kind, take the steps, and give the answers. Nothing
    may be left of it."""

    def run(plan: dict[str, Any], *steps: dict[str, Any], nodes: int = 1) -> list[Any]:
        plans = [{"name": "one", "store": "one", **plan}]
        asked = {"nodes": nodes, "logs": str(tmp_path), "plans": plans, "steps": steps}
        child = subprocess.run(
            [sys.executable, str(INSIDE), json.dumps(asked)],
            env=os.environ
            | {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}", "TMPDIR": str(scratch)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if child.returncode != 0:
            logs = [path.read_text() for path in sorted(tmp_path.glob("*.log"))]
            pytest.fail("\n".join([child.stderr, *logs]))
        assert not list(scratch.iterdir())
        return [json.loads(line) for line in child.stdout.splitlines()]

    return run
