"""What tests of the Python interface share: a copy of the golden run, which opening writes into."""

import shutil
from pathlib import Path

import pytest

from broadgauge.api.open_run import open_run
from broadgauge.api.stored_run import Run


@pytest.fixture
def golden(repository: Path, tmp_path: Path) -> Run:
    folder = tmp_path / "runs" / "golden"
    shutil.copytree(repository / "tests/results/golden/schema-1", folder)
    return open_run(folder)
