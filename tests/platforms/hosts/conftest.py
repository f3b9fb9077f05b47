"""Two machines with sshd for all tests of this folder, and a folder of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.platforms.hosts.machines import Machines, Tool, machines_in


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """The same for all tests of the session."""
    with machines_in(tmp_path_factory.mktemp("rig"), rate_gbps=0.2) as found:
        yield found


@pytest.fixture
def tool(machines: Machines, tmp_path: Path) -> Iterator[Tool]:
    """The tool beside them; a test may leave nothing there."""
    yield Tool(machines, tmp_path)
    left = machines.left_over()
    machines.clear()
    assert left == []
