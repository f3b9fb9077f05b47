"""Holds the start-up: `--help` imports nothing heavy, whatever the machine's speed."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "pandas", "pydantic", "rich", "ruamel", "vl_convert", "pyroute2")
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
