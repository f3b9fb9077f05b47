"""Does the comparison with a plain loop run where torch and the checkout are all there is?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.measuring, pytest.mark.slow]
WITHOUT_OURS = """
import os, runpy, sys
for name in ("pydantic", "ruamel", "ruamel.yaml", "rich"):
    sys.modules[name] = None
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))  # as python does for a script
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_both_train_the_same_weights_in_turns(tmp_path: Path, repository: Path) -> None:
    script = str(repository / "scripts/trainer_bench.py")
    sizes = ("--toy", "--cpu", "--no-compile", "--rounds", "2", "--steps", "2", "--model", "llama")
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_OURS, script, *sizes, "--json", tmp_path / "found.json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "ratio" in ran.stdout
    found = json.loads((tmp_path / "found.json").read_text())["models"]["llama"]
    assert len(found["ratios"]) == 2
    assert min(found["ratios"]) <= found["ratio"] <= max(found["ratios"])
