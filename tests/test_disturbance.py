"""Proves tests/disturbance.py: repeated is what failed while cores were stolen, nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PLUGIN = """
from tests import disturbance
disturbance.PATIENCE_S = 0
disturbance.StealWatch.most_since = lambda self, begin_s: {stolen}
def pytest_configure(config):
    config.pluginmanager.register(disturbance.Repeating())
"""
TESTS = """
import pytest
measured = []
@pytest.fixture(scope="module")
def number():
    measured.append(len(measured) + 1)
    return measured[-1]
def test_good(number):
    assert number == 1
def test_disturbed(number):
    assert number == 3
def test_bad(number):
    assert False
"""


@pytest.mark.parametrize(
    ("stolen", "counts", "repeats"), [("0.5", "1 failed, 2 passed", 5), ("0.0", "2 failed", 0)]
)
def test_a_failure_is_repeated_only_where_cores_were_stolen(
    tmp_path: Path, stolen: str, counts: str, repeats: int
) -> None:
    (tmp_path / "conftest.py").write_text(PLUGIN.format(stolen=stolen))
    (tmp_path / "test_some.py").write_text(TESTS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path],
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert counts in ran.stdout
    assert ran.stdout.count("core time was stolen") == repeats
