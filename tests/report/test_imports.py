"""Do the terminal's tables start without what only the page needs?"""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("broadgauge.report", ("numpy", "vl_convert", "rich", "torch")),
        ("broadgauge.report.terminal.printing", ("vl_convert", "torch")),
        ("broadgauge.report.page.html", ("vl_convert", "torch")),
        ("broadgauge.results.model", ("numpy",)),
        ("broadgauge.advise.trial_findings", ("numpy",)),
    ],
)
def test_heavy_modules_wait_until_they_are_used(module: str, absent: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*(name for name in {absent!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
