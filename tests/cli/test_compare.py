"""What does `compare RUN` say beside the ratios?"""

from pathlib import Path

import pytest

from broadgauge.cli.main import main

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"


def test_a_run_that_has_ended_guesses_no_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(GOLDEN)]) == 0
    shown = capsys.readouterr().out
    assert "note: no GPU for 2 ranks: CPUs are used" in shown
    assert "is a guess" not in shown
