"""Holds the start-up: `--help` imports nothing heavy, whatever the machine's speed."""

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from broadgauge.cli.main import main

HEAVY = (
    "torch",
    "numpy",
    "pandas",
    "pydantic",
    "rich",
    "ruamel",
    "vl_convert",
    "pyroute2",
    "httpx2",
)
GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"
COLLECTIONS = """
import gc
from broadgauge.results.folder import reading
read_run = reading.read_run
def reads(path):
    assert not gc.isenabled()
    return read_run(path)
reading.read_run = reads
"""
PROBE = """
import sys
from broadgauge.cli.main import main
try:
    main({arguments!r})
except SystemExit as end:
    assert end.code == 0, end.code
print("LOADED", *[name for name in {heavy!r} if name in sys.modules])
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["run", "--help"], ["predict", "--help"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = PROBE.format(arguments=arguments, heavy=HEAVY)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip().splitlines()[-1] == "LOADED"


def test_a_stored_run_is_shown_without_numpy_and_collections(tmp_path: Path) -> None:
    """Of what is judged already: that needs numpy once."""
    run = shutil.copytree(GOLDEN, tmp_path / "run")
    assert main(["show", str(run)]) == 0
    code = COLLECTIONS + PROBE.format(arguments=["show", str(run)], heavy=("numpy",))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip().splitlines()[-1] == "LOADED"
    assert gc.isenabled(), "only while the command ran"
